"""Two models over the same weights."""

import numpy as np
import pytest
from thinc.api import Adam, Linear, chain, clone, residual

from thincdialog.models.parameters import FlatParameters
from thincdialog.models.replica import replicate
from thincdialog.ops.dialog_ops import DialogNumpyOps


def make(tied=False):
    """Make a model of three or four layers with 12 weights each."""
    ops = DialogNumpyOps()
    first = Linear(3, 3)
    second = first if tied else Linear(3, 3)
    model = chain(first, residual(second), clone(Linear(3, 3), 2))
    for node in model.walk():
        node.ops = ops
    model.set_ref("second", second)
    model.initialize(ops.alloc2f(2, 3) + 1)
    return model, FlatParameters(model)


@pytest.mark.parametrize("tied", [False, True])
def test_a_replica_computes_and_learns_the_same(tied):
    model, parameters = make(tied)
    twin = replicate(model)
    own = parameters.replica(twin)
    X = np.random.default_rng(0).normal(size=(4, 3)).astype("f")
    Y, backprop = model.begin_update(X)
    Y2, backprop2 = twin.begin_update(X)
    assert Y.tobytes() == Y2.tobytes()
    assert backprop(Y).tobytes() == backprop2(Y2).tobytes()
    assert own.gradients.tobytes() == parameters.gradients.tobytes()
    assert own.gradients is not parameters.gradients
    assert own.n_parameters == parameters.n_parameters == (36 if tied else 48)
    before = parameters.values.copy()
    own.update(Adam(0.1))
    assert (parameters.values != before).any()
    assert own.values is parameters.values
    assert parameters.gradients.any() and not own.gradients.any()
    assert model.predict(X).tobytes() == twin.predict(X).tobytes()


def test_a_replica_has_its_own_ops_attributes_and_refs():
    model, _ = make()
    twin = replicate(model)
    assert twin.ops is not model.ops and type(twin.ops) is type(model.ops)
    assert all(node.ops is twin.ops for node in twin.walk())
    assert twin.get_ref("second") in list(twin.walk())
    assert [node.name for node in twin.walk()] == [node.name for node in model.walk()]
    model.ops.seed(1)
    twin.ops.seed(2)
    model.ops.seed(1)
    drawn = model.ops.get_dropout_mask((50,), 0.5).tolist()
    model.ops.seed(1)
    twin.ops.seed(3)
    assert model.ops.get_dropout_mask((50,), 0.5).tolist() == drawn


def test_parameters_move_to_another_vector():
    model, parameters = make()
    X = np.ones((1, 3), dtype="f")
    before = model.predict(X).tobytes()
    other = parameters.values.copy()
    parameters.move(other)
    assert model.predict(X).tobytes() == before
    other[:] = 0
    assert not model.predict(X).any()
    with pytest.raises(Exception, match="another size"):
        parameters.move(other[:-1])
