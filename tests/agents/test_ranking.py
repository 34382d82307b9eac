"""The best candidates are those of a stable sort of all; probabilities are those of a plain
softmax."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.agents.ranking import best_of, best_places

# Many scores are equal, and some are nan.
CELLS = st.sampled_from([-2.0, -0.0, 0.0, 0.5, 3.0, np.inf, -np.inf, np.nan])
NUMBERS = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=8)


@given(scores=st.lists(CELLS, min_size=1, max_size=40), n_best=st.integers(1, 45))
def test_ranking_is_that_of_a_stable_sort(scores, n_best):
    scores = np.array(scores, dtype="f")
    wanted = np.argsort(-scores, kind="stable")[:n_best]
    assert best_places(scores, n_best).tolist() == wanted.tolist()


@given(NUMBERS, st.integers(1, 9))
def test_ranking_puts_repeats_after_all_others(pairs, n_best):
    scores = np.array([score for score, _ in pairs], dtype="f")
    is_repeat = np.array([repeats for _, repeats in pairs])
    found = best_of(scores, n_best, is_repeat)
    expected = sorted(range(len(pairs)), key=lambda place: (pairs[place][1], -pairs[place][0]))
    assert found.places.tolist() == expected[:n_best]
    counted = [not repeats or bool(is_repeat.all()) for _, repeats in pairs]
    masses = [np.exp(score) * counts for (score, _), counts in zip(pairs, counted)]
    wanted = [masses[place] / sum(masses) for place in expected[:n_best]]
    assert found.probabilities.tolist() == pytest.approx(wanted, abs=1e-6)


def test_ranking_loss_is_of_the_right_one_among_all():
    scores = np.array([1, 3, 3, 2], dtype="f")
    found = best_of(scores, 3, np.array([False, True, False, False]), right=3)
    assert found.loss == pytest.approx(-np.log(np.exp(2) / np.exp(scores).sum()))
    assert found.scores.tolist() == [3, 2, 1] and best_of(scores, 1).loss is None
