"""Checks of the values that custom losses and our own losses return."""

import numpy as np
import pytest

from thincdialog.api import registry
from thincdialog.contract import CodeError, place_of
from thincdialog.losses.ranking import RankingHinge


class Own(RankingHinge):
    """A custom loss that does not return a value for each example."""

    def __call__(self, scores, targets, allowed=None):
        gradient, losses = super().__call__(scores, targets, allowed)
        return gradient, losses if allowed is None else losses.mean()


def test_watched_built_in_loss_is_called_directly():
    loss = RankingHinge()
    assert registry.losses.watch(loss, RankingHinge) is loss


def test_watched_custom_loss_says_where_it_returns_something_else():
    scores, targets = np.eye(3, dtype="f"), np.array([0, 2, 1])
    own = registry.losses.watch(Own(), Own)
    for found, known in zip(own(scores, targets), RankingHinge()(scores, targets)):
        assert (found == known).all()
    with pytest.raises(CodeError) as caught:
        own(scores, targets, np.ones((3, 3), dtype=bool))
    assert str(caught.value).startswith(f"{place_of(Own.__call__)} returned a tuple of 2")
    assert "one loss for each example, in float32" in str(caught.value)
