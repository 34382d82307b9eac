"""How far a run sees ahead."""

import math

import pytest

from thincdialog.training.progress import Epochs, Position
from thincdialog.training.triggers import TrainingLimits


@pytest.mark.parametrize("epochs, expected", [(2.0, math.inf), (1.0, math.inf), (0.5, 1)])
def test_epochs_only_events_within_the_epoch_limit_the_first_step(epochs, expected):
    """The size of the first step is unknown: it may have all examples of the epoch but one."""
    seen, limits = Epochs(None), TrainingLimits(epochs, 0, 0.0)
    seen.n_examples = 50

    def steps_until(position):
        return seen.steps_until(position, lambda later: limits.reached(later, 0.0) is not None)

    assert steps_until(Position()) == expected
    assert seen.count(10)
    assert steps_until(Position(step=1, examples=10)) == (2 if epochs < 1 else expected)
