"""The two layers of the memory network against loops written from the paper."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import Ragged

from tests.ops.array_backends import made, ragged
from thincdialog.layers.line_embed import LineEmbed
from thincdialog.layers.memory_hops import MemoryHops

N_IDS = 7
STORY = st.lists(st.lists(st.integers(0, N_IDS - 1), min_size=1, max_size=5), max_size=5)


def stories(examples):
    """Examples as lists of lines, the last one the current one; ids and segments."""
    found = []
    for lines in examples:
        backs = range(len(lines) - 1, -1, -1)
        found.append([(token, back) for back, line in zip(backs, lines) for token in line])
    return ragged(found)


@given(st.lists(STORY, min_size=1, max_size=4))
def test_line_embed_is_a_sum_of_words_times_places(examples):
    layer = made(lambda: LineEmbed(3, N_IDS, n_positions=3, n_segments=2))
    Y = layer.predict(stories(examples))
    E, P, T = (layer.get_param(name) for name in "EPT")
    wanted = []
    for lines in examples:
        for index, line in enumerate(lines or [[]]):
            row = T[min(max(len(lines), 1) - 1 - index, 1)].copy()
            for place, token in enumerate(line):
                row += E[token] * P[min(place, 2)]
            wanted.append(row)
    assert Y.lengths.tolist() == [max(1, len(lines)) for lines in examples]
    np.testing.assert_allclose(Y.dataXd, np.array(wanted), rtol=1e-4, atol=1e-6)


def test_line_embed_adds_the_current_line_where_it_is_missing():
    layer = made(lambda: LineEmbed(3, N_IDS))
    Y = layer.predict(ragged([[(1, 4), (2, 4), (3, 2)]]))
    assert Y.lengths.tolist() == [3]
    np.testing.assert_array_equal(Y.dataXd[2], layer.get_param("T")[0])


def test_line_embed_does_not_mind_the_order_of_segments():
    tokens = [(1, 2), (2, 2), (3, 1), (4, 0), (5, 0)]
    layer = made(lambda: LineEmbed(3, N_IDS))
    in_order = layer.predict(ragged([tokens]))
    turned = layer.predict(ragged([[tokens[i] for i in (3, 0, 4, 2, 1)]]))
    np.testing.assert_allclose(in_order.dataXd, turned.dataXd, rtol=1e-6)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 3))
def test_memory_hops_is_attention_over_the_memories(lengths, n_hops):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(sum(lengths), (n_hops + 1) * 2)).astype("f")
    X = Ragged(rows, np.array(lengths, dtype="i"))
    Y = made(lambda: MemoryHops(n_hops=n_hops), X).predict(X)
    start = 0
    for length, y in zip(lengths, Y):
        vectors = rows[start : start + length].reshape((length, n_hops + 1, 2)).astype("d")
        memories, u = vectors[:-1], vectors[-1, 0]
        for hop in range(n_hops):
            if len(memories):
                weights = np.exp(memories[:, hop] @ u)
                u = u + (weights / weights.sum()) @ memories[:, hop + 1]
        np.testing.assert_allclose(y, u, rtol=1e-4, atol=1e-5)
        start += length


def test_memory_hops_large_logits_do_not_overflow():
    rows = np.array([[200.0, 1.0], [-200.0, 2.0], [1.0, 0.0]], dtype="f") * 100
    X = Ragged(rows, np.array([3], dtype="i"))
    assert made(lambda: MemoryHops(n_hops=1), X).predict(X).tolist() == [[200.0]]


def test_memory_hops_width_that_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="5 wide, which cannot be divided"):
        made(lambda: MemoryHops(n_hops=1), Ragged(np.zeros((2, 5), "f"), np.array([2], "i")))
