import numpy as np
import pytest

from tests.ops.array_backends import EACH_OPS, ragged
from thincdialog.api import registry
from thincdialog.layers.dropout import drop_tokens
from thincdialog.layers.fill_empty import fill_empty


@pytest.mark.parametrize("rate", [-0.1, 1.0, 2.0])
@pytest.mark.parametrize("name", ["BagEncoder", "CNNEncoder", "BiLSTMEncoder", "MemoryReader"])
def test_checked_dropout_refuses_rates_that_leave_nothing(name, rate):
    build = registry.models.get(f"thincdialog.{name}.v1")
    with pytest.raises(ValueError, match=f"dropout = {rate}.*below 1"):
        build(dropout=rate)


@EACH_OPS
def test_drop_tokens_leaves_out_the_given_share_in_order(ops):
    X = ragged([range(4000), [], range(4000, 10000)], ops)
    Y, backprop = drop_tokens(0.25).begin_update(X)
    kept = Y.dataXd[:, 0]
    # Within five standard deviations of a binomial distribution around 7,500.
    assert abs(len(kept) - 7500) < 5 * np.sqrt(10000 * 0.25 * 0.75)
    assert (np.diff(kept) > 0).all()
    n_first = int((kept < 4000).sum())
    assert Y.lengths.tolist() == [n_first, 0, len(kept) - n_first]
    dX = backprop(Y)  # Ids have no gradient.
    assert dX.dataXd.shape == (10000, 2) and not dX.dataXd.any()


def test_drop_tokens_never_empties_an_example_and_keeps_everything_when_predicting(ops):
    X = ragged([[1]] * 200)
    assert drop_tokens(0.9).begin_update(X)[0].lengths.tolist() == [1] * 200
    assert drop_tokens(0.9).predict(X) is X


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_drop_tokens_rate_out_of_range(rate):
    with pytest.raises(ValueError, match="at least 0 and below 1"):
        drop_tokens(rate)


@pytest.mark.parametrize("examples", [[[]], [[], [5, 6], [], [7], []], [[], []]])
def test_fill_empty_gives_a_padding_token_where_there_is_none(examples, ops):
    X = ragged(examples)
    Y, backprop = fill_empty().begin_update(X)
    assert Y.lengths.tolist() == [max(1, len(ids)) for ids in examples]
    assert Y.dataXd.tolist() == [[token, 0] for ids in examples for token in ids or [0]]
    assert backprop(Y).dataXd.shape == X.dataXd.shape
