"""The newest turns of each conversation."""

import numpy as np
import pytest
from thinc.api import Ragged

from tests.ops.array_backends import EACH_OPS
from thincdialog.layers.newest_turns import newest_turns


@EACH_OPS
def test_newest_turns_stay_in_order_and_others_are_removed(ops):
    # A conversation of three turns, one without a newest turn, a reply, and an empty one.
    tokens = [[5, 2], [6, 1], [7, 1], [8, 0], [9, 3], [4, 0], [3, 0]]
    X = Ragged(ops.asarray2i(tokens), ops.asarray1i([4, 1, 2, 0]))
    for n_turns, kept, lengths in (
        (1, [8, 4, 3], [1, 0, 2, 0]),
        (2, [6, 7, 8, 4, 3], [3, 0, 2, 0]),
        (4, [5, 6, 7, 8, 9, 4, 3], [4, 1, 2, 0]),
    ):
        Y, backprop = newest_turns(n_turns)(X, True)
        assert ops.to_numpy(Y.dataXd)[:, 0].tolist() == kept
        assert ops.to_numpy(Y.lengths).tolist() == lengths
        dX = backprop(Y)
        assert dX.dataXd.shape == X.dataXd.shape
        assert not np.any(ops.to_numpy(dX.dataXd))


def test_newest_turns_are_one_or_more():
    with pytest.raises(ValueError, match="n_turns = 0, but it must be 1 or more"):
        newest_turns(0)
