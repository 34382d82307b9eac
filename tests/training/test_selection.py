"""The choice of the best weights, and when they are good enough."""

import pytest

from thincdialog.training.selection import Selection


def selection(direction="max", patience=0, target=None):
    training = {"score": "it", "score_direction": direction, "patience": patience}
    return Selection({**training, "target_score": target}, has_dev=True)


@pytest.mark.parametrize("direction, scores", [("max", [1, 3, 2, 3]), ("min", [3, 1, 2, 1])])
def test_selection_takes_the_first_of_equals_in_either_direction(direction, scores):
    best = selection(direction)
    seen = [best.see({"it": float(score)}, step) for step, score in enumerate(scores)]
    assert seen == [True, True, False, False]
    assert (best.best, best.step) == (float(scores[1]), 1)


def test_selection_gives_up_after_patience_evaluations_without_progress():
    best = selection(patience=2)
    best.see({"it": 0.5}, 1)
    best.see({"it": 0.4}, 2)
    assert best.reached() is None
    again = selection(patience=2)
    again.restore(best.state())
    again.see({"it": 0.5}, 3)
    assert "patience" in again.reached()


@pytest.mark.parametrize("direction, below", [("max", 0.89), ("min", 0.91)])
def test_selection_ends_at_exactly_the_target(direction, below):
    best = selection(direction, target=0.9)
    best.see({"it": below}, 1)
    assert best.reached() is None
    best.see({"it": 0.9}, 2)
    assert "target_score" in best.reached()
