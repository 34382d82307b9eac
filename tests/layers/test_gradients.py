"""Gradients that are added to in place, by rows, or that nobody needs."""

import numpy as np
import pytest
from thinc.api import Linear, Model, chain

from tests.ops.array_backends import EACH_OPS, ragged
from thincdialog.layers.bag_embed import BagEmbed
from thincdialog.layers.gradients import add_rows, gradient, gradient_of_rows, no_gradient
from thincdialog.ops.bags import parts_by_key
from thincdialog.ops.known_numbers import put


@pytest.fixture
def layer(ops):
    layer = Linear(4, 2)
    layer.initialize()
    return layer


@EACH_OPS
def test_gradient_is_the_layers_own_and_zero_at_first(ops, layer):
    found = gradient(layer, "W")
    assert found.shape == (4, 2) and not found.any()
    found += 1
    layer.inc_grad("W", ops.alloc2f(4, 2) + 2)
    assert gradient(layer, "W") is layer.get_grad("W")
    assert gradient(layer, "W").tolist() == [[3.0, 3.0]] * 4


@EACH_OPS
def test_gradients_of_rows_are_added_to_these_rows(ops, layer):
    values = np.arange(8, dtype="f").reshape(4, 2)
    for _ in range(2):
        (keys,) = put(ops, "keys", np.array([3, 0, 3, 2], dtype="i"))
        add_rows(layer, "W", *parts_by_key(ops, ops.asarray2f(values), keys))
    wanted = [values[1], [0, 0], values[3], values[0] + values[2]]
    assert layer.get_grad("W").tolist() == (2 * np.array(wanted)).tolist()


@EACH_OPS
def test_no_gradient_is_zeros_of_the_same_form(ops):
    for X in (ops.asarray2i([[1, 2], [3, 4]]), ops.alloc2f(3, 5) + 1, ops.alloc2i(0, 2)):
        zeros = no_gradient(ops, X)
        assert (zeros.shape, zeros.dtype) == (X.shape, X.dtype) and not zeros.any()


@EACH_OPS
def test_no_gradient_is_not_spoiled_by_a_layer_that_adds_to_it_in_place(ops):
    def forward(model, X, is_train):
        def backprop(dX):
            seen.append(dX.dataXd.copy())
            gradient = dX.dataXd
            gradient += 1
            return dX

        return X, backprop

    seen = []
    X = ragged([[1, 2], [3]], ops)
    layer = chain(Model("adds", forward), BagEmbed(4, 5))
    layer.initialize(X=X)
    for _ in range(2):
        Y, backprop = layer.begin_update(X)
        backprop(Y)
    assert len(seen) == 2 and not any(each.any() for each in seen)


@pytest.mark.gpu
@pytest.mark.parametrize("ops", [0], indirect=True)
def test_gradient_of_rows_on_a_device_has_zeros_elsewhere(ops):
    X = ops.alloc2f(4, 2) + 1
    rows = [ops.asarray1i(each) for each in ([2], [0, 3])]
    parts = list(zip(rows, (ops.alloc2f(1, 2) + 5, ops.alloc2f(2, 2) + 7)))
    assert gradient_of_rows(ops, X, parts).tolist() == [[7, 7], [0, 0], [5, 5], [7, 7]]
    nothing = [(each, no_gradient(ops, X[: each.shape[0]])) for each in rows]
    assert ops.is_no_gradient(gradient_of_rows(ops, X, nothing))
