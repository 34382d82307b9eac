"""When training evaluates and ends."""

import numpy
import pytest

from thincdialog.training.progress import Position
from thincdialog.training.triggers import Every, TrainingLimits


def test_limits_name_the_one_that_is_reached():
    limits = TrainingLimits(1.5, 10, 60.0)
    assert limits.reached(Position(epoch=1.4, step=9), 59.0) is None
    assert "max_steps = 10" in limits.reached(Position(epoch=0.1, step=10), 0.0)
    assert "max_epochs = 1.5" in limits.reached(Position(epoch=1.5, step=9), 0.0)
    assert "max_seconds = 60" in limits.reached(Position(epoch=0.1, step=9), 60.0)
    limits = TrainingLimits(1.5, 0, 0.0, min_steps=10)
    assert limits.reached(Position(epoch=1.5, step=9), 0.0) is None
    reached = limits.reached(Position(epoch=1.7, step=10), 0.0)
    assert reached == "min_steps = 10 reached, after max_epochs = 1.5"
    assert "max_epochs = 1.5" in limits.reached(Position(epoch=1.5, step=11), 0.0)


@pytest.mark.parametrize(
    "epochs,steps,per_epoch,expected",
    [(2.0, 0, 7.0, 14), (1.5, 0, 7.0, 11), (2.0, 5, 7.0, 5), (2.0, 0, None, None), (0, 5, None, 5)],
)
def test_limits_total_steps(epochs, steps, per_epoch, expected):
    assert TrainingLimits(epochs, steps, 0.0).total_steps(per_epoch) == expected


@pytest.mark.parametrize(
    "steps, min_steps, per_epoch, expected",
    [(0, 20, 7.0, 20), (0, 10, 7.0, 14), (5, 20, 7.0, 5), (0, 20, None, None)],
)
def test_limits_total_steps_are_no_fewer_than_the_least(steps, min_steps, per_epoch, expected):
    assert TrainingLimits(2.0, steps, 0.0, min_steps).total_steps(per_epoch) == expected


@pytest.mark.parametrize("epochs, steps", [(0.0, 10), (0.1, 0)])
def test_every_counts_from_the_last_evaluation_and_does_not_drift(epochs, steps):
    every, due = Every(epochs, steps, 0.0), []
    for step in range(1, 101):
        position = Position(epoch=step / 100, step=step)
        if every.due(position, 0.0):
            due.append(step)
            every.done(position, 0.0)
    assert due == list(range(10, 101, 10))


@pytest.mark.parametrize(
    "per_epoch, every, least, expected",
    [
        (1, 1.0, 10, [1, 10, 20, 30, 40]),
        (3, 1.0, 10, [3, 12, 24, 36]),
        (3, 0.5, 1, [2, 3, 5, 6, 8, 9, 11, 12]),
        (4, 0.5, 3, [2, 4, 8, 12, 16]),
        (12, 0.5, 5, [6, 12, 18]),
    ],
)
def test_every_skips_epochs_that_are_too_short(per_epoch, every, least, expected):
    marks, due = Every(every, 0, 0.0, least), []
    for step in range(1, expected[-1] + 1):
        position = Position(epoch=step / per_epoch, step=step)
        if marks.due(position, 0.0):
            due.append(step)
            marks.done(position, 0.0)
    assert due == expected


def test_every_does_not_follow_a_first_large_batch_for_long():
    """The first batch is half of an epoch; 50 more follow, with one example each."""
    marks, due = Every(0.1, 0, 0.0, 15), []
    for step in range(1, 205):
        epoch, of_epoch = divmod(step - 1, 51)
        position = Position(epoch=epoch + 0.5 + of_epoch / 100, step=step)
        if marks.due(position, 0.0):
            due.append(step)
            marks.done(position, 0.0)
    assert due[:2] == [1, 51] and len(due) > 8 and max(numpy.diff(due)) <= 51


@pytest.mark.parametrize("every", [5e-324, 1e-300, 1e300])
def test_every_of_odd_fractions_is_due_or_not(every):
    marks = Every(every, 0, 0.0, 15)
    for step in range(1, 9):
        position = Position(epoch=step / 4, step=step)
        assert marks.due(position, 0.0) == (every < 1)
        marks.done(position, 0.0)


def test_every_is_never_due_twice_at_one_step():
    every = Every(0.0, 0, 1.0)
    position = Position(step=1)
    assert every.due(position, 5.0)
    every.done(position, 5.0)
    assert not every.due(position, 50.0)
