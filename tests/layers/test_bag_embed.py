import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import NumpyOps, Ragged

from tests.ops.array_backends import backend
from thincdialog.layers.bag_embed import BagEmbed

N_IDS = 9


def conversation(tokens):
    """Examples given as lists of (id, segment)."""
    data = np.array([pair for example in tokens for pair in example], dtype="i").reshape(-1, 2)
    return Ragged(data, np.array([len(example) for example in tokens], dtype="i"))


EXAMPLES = st.lists(
    st.lists(st.tuples(st.integers(0, N_IDS - 1), st.integers(0, 5)), max_size=6),
    min_size=1,
    max_size=5,
)


@given(EXAMPLES, st.sampled_from(["mean", "sum", "sqrt"]))
def test_bag_embed_is_the_sum_of_its_rows(examples, pooling):
    with backend(-1):
        layer = BagEmbed(4, N_IDS, pooling=pooling)
        layer.initialize()
        Y = layer.predict(conversation(examples))
    E = layer.get_param("E")
    for row, example in zip(Y, examples):
        n = max(1, len(example))
        wanted = sum((E[token] for token, _ in example), np.zeros(4))
        wanted = wanted / {"mean": n, "sum": 1, "sqrt": np.sqrt(n)}[pooling]
        np.testing.assert_allclose(row, wanted, rtol=1e-4, atol=1e-6)


@given(EXAMPLES)
def test_bag_embed_separate_segments_have_their_own_columns(examples):
    with backend(-1):
        layer = BagEmbed(6, N_IDS, segments="separate", n_segments=3)
        layer.initialize()
        Y = layer.predict(conversation(examples))
    E = layer.get_param("E")
    for row, example in zip(Y, examples):
        for segment in range(3):
            rows = [E[token] for token, back in example if min(back, 2) == segment]
            wanted = np.mean(rows, axis=0) if rows else np.zeros(2)
            columns = row[2 * segment : 2 * segment + 2]
            np.testing.assert_allclose(columns, wanted, rtol=1e-4, atol=1e-6)


def test_bag_embed_learned_weights_start_as_a_plain_sum_of_segments():
    examples = [[(1, 3), (2, 1), (3, 0), (4, 0)]]
    with backend(-1):
        layer = BagEmbed(4, N_IDS, segments="weight", n_segments=2)
        layer.initialize()
        Y = layer.predict(conversation(examples))
        layer.get_param("w")[:] = [2.0, 0.5]
        Z = layer.predict(conversation(examples))
    E = layer.get_param("E")
    current, history = (E[3] + E[4]) / 2, (E[1] + E[2]) / 2
    np.testing.assert_allclose(Y[0], current + history, rtol=1e-5)
    np.testing.assert_allclose(Z[0], 2 * current + history / 2, rtol=1e-5)


def test_bag_embed_gives_the_same_on_stock_ops():
    X = conversation([[(1, 0), (2, 1)], [], [(1, 0)]])
    with backend(-1):
        ours = BagEmbed(4, N_IDS, segments="separate")
        ours.initialize()
    stock = ours.copy()
    stock.ops = NumpyOps()
    assert (stock.predict(X) == ours.predict(X)).all()


def test_bag_embed_odd_width_for_two_segments_is_refused():
    with pytest.raises(ValueError, match="nO = 5 cannot be divided by n_segments = 2"):
        BagEmbed(5, N_IDS, segments="separate")


def test_bag_embed_unknown_id_is_an_error():
    with backend(-1):
        layer = BagEmbed(4, N_IDS)
        layer.initialize()
        with pytest.raises(IndexError):
            layer.predict(conversation([[(N_IDS, 0)]]))
