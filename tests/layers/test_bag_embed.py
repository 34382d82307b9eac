import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import NumpyOps

from tests.ops.array_backends import made, ragged
from thincdialog.layers.bag_embed import BagEmbed

N_IDS = 9
TOKEN = st.tuples(st.integers(0, N_IDS - 1), st.integers(0, 5))
EXAMPLES = st.lists(st.lists(TOKEN, max_size=6), min_size=1, max_size=5)


@given(EXAMPLES, st.sampled_from(["mean", "sum", "sqrt"]))
def test_bag_embed_is_the_sum_of_its_rows(examples, pooling):
    layer = made(lambda: BagEmbed(4, N_IDS, pooling=pooling))
    E = layer.get_param("E")
    for row, example in zip(layer.predict(ragged(examples)), examples):
        n = max(1, len(example))
        wanted = sum((E[token] for token, _ in example), np.zeros(4))
        wanted = wanted / {"mean": n, "sum": 1, "sqrt": np.sqrt(n)}[pooling]
        np.testing.assert_allclose(row, wanted, rtol=1e-4, atol=1e-6)


@given(EXAMPLES)
def test_bag_embed_separate_segments_have_their_own_columns(examples):
    layer = made(lambda: BagEmbed(6, N_IDS, segments="separate", n_segments=3))
    E = layer.get_param("E")
    for row, example in zip(layer.predict(ragged(examples)), examples):
        for segment in range(3):
            rows = [E[token] for token, back in example if min(back, 2) == segment]
            wanted = np.mean(rows, axis=0) if rows else np.zeros(2)
            columns = row[2 * segment : 2 * segment + 2]
            np.testing.assert_allclose(columns, wanted, rtol=1e-4, atol=1e-6)


def test_bag_embed_learned_weights_start_as_a_plain_sum_of_segments():
    X = ragged([[(1, 3), (2, 1), (3, 0), (4, 0)]])
    layer = made(lambda: BagEmbed(4, N_IDS, segments="weight", n_segments=2))
    E = layer.get_param("E")
    current, history = (E[3] + E[4]) / 2, (E[1] + E[2]) / 2
    np.testing.assert_allclose(layer.predict(X)[0], current + history, rtol=1e-5)
    layer.get_param("w")[:] = [2.0, 0.5]
    np.testing.assert_allclose(layer.predict(X)[0], 2 * current + history / 2, rtol=1e-5)


def test_bag_embed_gives_the_same_on_stock_ops():
    X = ragged([[(1, 0), (2, 1)], [], [(1, 0)]])
    ours = made(lambda: BagEmbed(4, N_IDS, segments="separate"))
    stock = ours.copy()
    stock.ops = NumpyOps()
    assert (stock.predict(X) == ours.predict(X)).all()


def test_bag_embed_refuses_odd_widths_of_two_segments_and_unknown_ids():
    with pytest.raises(ValueError, match="nO = 5 cannot be divided by n_segments = 2"):
        BagEmbed(5, N_IDS, segments="separate")
    with pytest.raises(IndexError):
        made(lambda: BagEmbed(4, N_IDS)).predict(ragged([[N_IDS]]))
