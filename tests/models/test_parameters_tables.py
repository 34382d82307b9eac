"""Embedding tables in FlatParameters: their gradients are kept as rows."""

import numpy as np
import pytest
from thinc.api import Adam, Linear, Ragged, chain, fix_random_seed

from tests.models.test_parameters import N_IDS, learn, text_net
from tests.ops.array_backends import backend, ragged
from thincdialog.errors import TrainingError
from thincdialog.layers.bag_embed import BagEmbed
from thincdialog.layers.line_embed import LineEmbed
from thincdialog.models.parameters import FlatParameters
from thincdialog.optimizers.lazy_adam import LazyAdam


def test_parameters_table_tied_to_a_dense_layer_is_not_treated_by_rows(ops):
    embed, out = BagEmbed(6, N_IDS), Linear(N_IDS, 6)
    model = chain(embed, out)
    model.initialize(X=ragged([[1]]))
    out.set_param("W", embed.get_param("E"))
    parameters = FlatParameters(model)
    before = embed.get_param("E").copy()
    learn(model, ragged([[3]]))
    assert embed.get_grad("E").any(axis=1).all()
    parameters.update(LazyAdam(0.1))
    assert (embed.get_param("E") != before).any(axis=1).all()
    assert not parameters.gradients.any()


@pytest.mark.parametrize("make", [Adam, LazyAdam])
def test_parameters_are_the_same_whether_the_gradient_of_a_table_was_read_or_not(make):
    found = []
    for is_read in (False, True):
        with backend(-1) as ops:
            fix_random_seed(0)
            model = text_net(ops)
            parameters, optimizer = FlatParameters(model), make(0.1)
            for batch in ([[1, 2, 2]], [[2, 5], [5, 30]]):
                for ids in batch:
                    learn(model, ragged([ids]))
                    if is_read:
                        assert parameters.gradients.any()
                parameters.update(optimizer)
        assert not parameters.gradients.any()
        found.append(parameters.values.tobytes())
    assert found[0] == found[1]


def test_parameters_a_gradient_that_is_not_finite_stays_till_it_is_cleared(ops):
    model = text_net(ops)
    parameters = FlatParameters(model)
    before = parameters.values.copy()
    Y, backprop = model.layers[0].begin_update(ragged([[3, 4]]))
    backprop(Y * np.float32("nan"))
    for _ in range(2):
        with pytest.raises(TrainingError, match="not finite"):
            parameters.update(LazyAdam(0.1))
    assert parameters.values.tobytes() == before.tobytes()
    assert np.isnan(parameters.gradients).sum() == 2 * 6
    parameters.clear_gradients()
    parameters.update(LazyAdam(0.1))
    assert parameters.values.tobytes() == before.tobytes()


def test_parameters_only_the_table_of_a_layer_is_treated_by_rows(ops):
    """The layer's other matrices have a gradient in every row, so all of their rows must be
    trained."""
    X = ragged([[(30, 0), (31, 1)]])
    layer = LineEmbed(4, N_IDS, n_positions=2, n_segments=3)
    layer.initialize(X=X)
    parameters = FlatParameters(layer)
    before = {name: layer.get_param(name).copy() for name in "EPT"}
    Y, backprop = layer.begin_update(X)
    backprop(Ragged(Y.dataXd * 0 + 1, Y.lengths))
    parameters.update(LazyAdam(0.1))
    changed = {n: (layer.get_param(n) != before[n]).any(axis=1).nonzero()[0] for n in "EPT"}
    assert {name: rows.tolist() for name, rows in changed.items()} == {
        "E": [30, 31], "P": [0], "T": [0, 1],
    }  # fmt: skip


@pytest.mark.parametrize("is_read", [False, True])
def test_parameters_cleared_gradients_change_no_row(ops, is_read):
    """Tests a table whose gradient has been read, and one whose gradient has not."""
    model = text_net(ops)
    parameters = FlatParameters(model)
    before = model.layers[0].get_param("E").copy()
    learn(model, ragged([[1, 2]]))
    assert not is_read or parameters.gradients.any()
    parameters.clear_gradients()
    learn(model, ragged([[2, 5]]))
    parameters.update(LazyAdam(0.1))
    changed = (model.layers[0].get_param("E") != before).any(axis=1)
    assert np.flatnonzero(changed).tolist() == [2, 5]
    assert not parameters.gradients.any()
