"""The two layers of the memory network, compared with loops written from the paper."""

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
    """Make examples from lists of lines, the last of which is the current one. Return ids and
    segments."""
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


def test_line_embed_noise_leaves_room_between_lines_in_training(ops):
    layer = made(lambda: LineEmbed(1, N_IDS, n_segments=90, noise=0.1))
    layer.set_param("E", layer.get_param("E") * 0)
    layer.set_param("T", np.arange(90, dtype="f")[:, None])
    X = ragged([[(1, back) for back in range(59, -1, -1)], [], [(2, 7), (3, 0)]] * 40)
    ages = []
    for seed in (0, 0, 1):
        ops.seed(seed, 1)
        layer.ops = ops
        Y, _ = layer.begin_update(X)
        ages.append(Y.dataXd[:, 0].tolist())
    first = np.array(ages[0]).reshape(40, 63)
    gaps = -np.diff(first[:, :60], axis=1)
    assert ages[0] == ages[1] != ages[2]
    assert set(gaps.ravel()) == {1.0, 2.0} and not first[:, [59, 60, 62]].any()
    # Five standard deviations of a binomial distribution.
    assert abs((gaps == 2).mean() - 0.1) < 5 * np.sqrt(0.1 * 0.9 / gaps.size)
    assert set(first[:, 61]) == {7.0, 8.0}
    assert layer.predict(X).dataXd[:, 0].tolist() == [*range(59, -1, -1), 0, 7, 0] * 40


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 3), st.integers(0, 5))
def test_memory_hops_is_attention_over_the_memories(lengths, n_hops, n_memories):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(sum(lengths), (n_hops + 1) * 2)).astype("f")
    X = Ragged(rows, np.array(lengths, dtype="i"))
    Y = made(lambda: MemoryHops(n_hops=n_hops, n_memories=n_memories), X).predict(X)
    start = 0
    for length, y in zip(lengths, Y):
        vectors = rows[start : start + length].reshape((length, n_hops + 1, 2)).astype("d")
        memories, u = vectors[:-1], vectors[-1, 0]
        for hop in range(n_hops):
            if len(memories):
                weights = np.exp(memories[:, hop] @ u)
                total = weights.sum() + max(0, n_memories - len(memories))
                u = u + (weights / total) @ memories[:, hop + 1]
        np.testing.assert_allclose(y, u, rtol=1e-4, atol=1e-5)
        start += length


def test_memory_hops_reads_without_softmax_in_its_first_steps(ops):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5, 6)).astype("f")
    X = Ragged(rows, np.array([4, 1], dtype="i"))
    layer = made(lambda: MemoryHops(n_hops=2, linear_start=3), X)
    layer.ops = ops
    memories, u = rows[:3].reshape((3, 3, 2)), rows[3, :2]
    for hop in range(2):
        u = u + memories[:, hop].dot(u) @ memories[:, hop + 1]
    ops.seed(0, 3)
    Y, backprop = layer.begin_update(X)
    np.testing.assert_allclose(Y, [u, rows[4, :2]], rtol=1e-4)
    dY, direction = rng.normal(size=(2, *Y.shape)), rng.normal(size=rows.shape)
    dX = backprop(dY[0].astype("f")).dataXd
    moved = [
        layer.begin_update(Ragged((rows + by * direction).astype("f"), X.lengths))[0]
        for by in (1e-3, -1e-3)
    ]
    slope = ((moved[0].astype("d") - moved[1]) * dY[0]).sum() / 2e-3
    assert (dX * direction).sum() == pytest.approx(slope, rel=1e-2)
    with_softmax = layer.predict(X)
    assert (with_softmax != Y).any()
    ops.seed(0, 4)
    assert (layer.begin_update(X)[0] == with_softmax).all()


def test_memory_hops_large_logits_do_not_overflow():
    rows = np.array([[200.0, 1.0], [-200.0, 2.0], [1.0, 0.0]], dtype="f") * 100
    X = Ragged(rows, np.array([3], dtype="i"))
    assert made(lambda: MemoryHops(n_hops=1), X).predict(X).tolist() == [[200.0]]


def test_memory_hops_without_empty_memories_take_very_low_logits():
    rows = np.array([[-200.0, 3.0], [-200.0, 5.0], [1.0, 0.0]], dtype="f")
    X = Ragged(rows, np.array([3], dtype="i"))
    assert made(lambda: MemoryHops(n_hops=1), X).predict(X).tolist() == [[5.0]]
