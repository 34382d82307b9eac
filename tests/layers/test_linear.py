"""Linear layers beside Thinc's own, with the same weights."""

import numpy as np
import pytest
import thinc.api

from tests.layers.test_layers import matrix
from tests.ops.array_backends import EACH_OPS
from thincdialog.layers import linear


def draw(ops, *shape):
    return ops.asarray(np.random.default_rng(1).normal(size=shape).astype("f"))


@EACH_OPS
@pytest.mark.parametrize("name", ["Linear", "Relu"])
def test_linear_layers_are_thincs(name, ops):
    X, found = matrix(ops), []
    ours, theirs = (getattr(module, name)(4, 6) for module in (linear, thinc.api))
    theirs.initialize()
    ours.from_bytes(theirs.to_bytes())
    ours.set_param("b", draw(ops, 4))
    theirs.set_param("b", draw(ops, 4))
    for model in (ours, theirs):
        for _ in range(2):  # Gradients are added up.
            Y, backprop = model.begin_update(X)
            dX = backprop(draw(ops, *Y.shape))
        arrays = (Y, dX, model.get_grad("W"), model.get_grad("b"))
        found.append([ops.to_numpy(each) for each in arrays])
    for own, of_thinc in zip(*found):
        np.testing.assert_allclose(own, of_thinc, rtol=1e-5, atol=1e-5)
    if ops.device_type == "cpu":  # There they are Thinc's to the last bit.
        assert all(own.tobytes() == of_thinc.tobytes() for own, of_thinc in zip(*found))


@EACH_OPS
def test_relu_learns_nothing_from_what_was_cut(ops):
    model = linear.Relu(2, 1)
    model.initialize()
    model.set_param("W", ops.asarray2f([[1.0], [-1.0]]))
    Y, backprop = model.begin_update(ops.asarray2f([[3.0], [-2.0], [0.0]]))
    assert Y.tolist() == [[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]
    assert backprop(ops.asarray2f([[5.0, 7.0]] * 3)).tolist() == [[5.0], [-7.0], [0.0]]
    assert model.get_grad("W").tolist() == [[15.0], [-14.0]]
    assert model.get_grad("b").tolist() == [5.0, 7.0]


@EACH_OPS
def test_linear_begins_as_its_initializer_says(ops):
    model = linear.Linear(init_W=lambda ops, shape: ops.alloc(shape) + 0.5)
    model.initialize(X=matrix(ops), Y=matrix(ops, 3))
    assert model.get_param("W").tolist() == [[0.5] * 6] * 3 and not model.get_param("b").any()
