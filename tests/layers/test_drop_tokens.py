import numpy as np
import pytest
from thinc.api import Ragged

from tests.ops.array_backends import BACKENDS, backend
from thincdialog.layers.dropout import drop_tokens
from thincdialog.layers.fill_empty import fill_empty


def batch(ops, lengths):
    n = sum(lengths)
    data = np.stack([np.arange(n), np.zeros(n)], axis=1)
    return Ragged(ops.asarray2i(data.astype("i")), ops.asarray1i(lengths))


@pytest.mark.parametrize("gpu_id", BACKENDS)
def test_drop_tokens_leaves_out_the_given_share_in_order(gpu_id):
    with backend(gpu_id) as ops:
        X = batch(ops, [4000, 0, 6000])
        Y, backprop = drop_tokens(0.25).begin_update(X)
        kept = ops.to_numpy(Y.dataXd[:, 0])
        # Five standard deviations of a binomial around 7,500.
        assert abs(len(kept) - 7500) < 5 * np.sqrt(10000 * 0.25 * 0.75)
        assert (np.diff(kept) > 0).all()
        assert ops.to_numpy(Y.lengths).tolist() == [
            int((kept < 4000).sum()), 0, int((kept >= 4000).sum()),
        ]  # fmt: skip
        dX = backprop(Ragged(Y.dataXd * 0 + 1, Y.lengths))
        assert ops.to_numpy(dX.dataXd[:, 0].nonzero()[0]).tolist() == kept.tolist()


def test_drop_tokens_never_empties_an_example():
    with backend(-1) as ops:
        X = batch(ops, [1] * 200)
        Y, _ = drop_tokens(0.9).begin_update(X)
        assert Y.lengths.tolist() == [1] * 200


def test_drop_tokens_keeps_everything_when_predicting():
    with backend(-1) as ops:
        X = batch(ops, [3, 2])
        assert drop_tokens(0.9).predict(X) is X


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_drop_tokens_rate_out_of_range(rate):
    with pytest.raises(ValueError, match="at least 0 and below 1"):
        drop_tokens(rate)


@pytest.mark.parametrize("lengths", [[0], [0, 2, 0, 1, 0], [0, 0]])
def test_fill_empty_gives_a_padding_token_where_there_is_none(lengths):
    with backend(-1) as ops:
        X = batch(ops, lengths)
        X = Ragged(X.dataXd.reshape((-1, 2)) + 1, X.lengths)
        Y, backprop = fill_empty().begin_update(X)
        assert Y.lengths.tolist() == [max(1, length) for length in lengths]
        wanted, token = [], 1
        for length in lengths:
            wanted += [[0, 0]] if not length else [[token + i, 1] for i in range(length)]
            token += length
        assert Y.dataXd.tolist() == wanted
        assert backprop(Y).dataXd.tolist() == X.dataXd.tolist()
