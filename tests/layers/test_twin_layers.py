"""Layers alike that share a batch give what each gives alone."""

import numpy as np
import pytest
from thinc.api import Ragged

from tests.ops.array_backends import backend
from thincdialog.layers import feed_forward, linear, window_block
from thincdialog.layers.feed_forward import ResidualFeedForward
from thincdialog.layers.linear import Linear
from thincdialog.layers.twin_layers import TwinLayers, are_twins
from thincdialog.layers.window_block import WindowBlock

LAYERS = {
    "linear": (linear, lambda: Linear(33, 8)),
    "feed forward": (feed_forward, lambda: ResidualFeedForward(8, 33)),
    "windows": (window_block, lambda: WindowBlock(8, n_pieces=2)),
}


def drawn(ops, *shape, seed=0):
    return ops.asarray(np.random.default_rng(seed).normal(size=shape).astype("f"))


def rows_of(Y):
    return Y.dataXd if isinstance(Y, Ragged) else Y


@pytest.mark.gpu
@pytest.mark.parametrize("n_threads", [1, 7, 128])
@pytest.mark.parametrize("n_first", [35, 1, 69])  # As many rows of both, and not.
@pytest.mark.parametrize("name", LAYERS)
def test_twin_layers_give_what_each_gives_alone(name, n_first, n_threads, monkeypatch):
    cupy = pytest.importorskip("cupy")
    if hasattr(cupy, "is_stand_in"):
        monkeypatch.setattr(cupy._kernels, "threads_of_a_block", n_threads)
    module, make = LAYERS[name]
    with backend(0) as ops:
        both = make(), make()
        X = drawn(ops, 70, 8)
        rows, lengths = (slice(n_first), slice(n_first, None)), (n_first, 70 - n_first)
        for number, layer in enumerate(both):
            layer.initialize(X=Ragged(X, ops.asarray([70])) if name == "windows" else X)
            for node in layer.walk():
                for param in node.param_names:
                    shape = node.get_param(param).shape
                    node.set_param(param, drawn(ops, *shape, seed=number) / 2)
        assert are_twins(*both)

        def given(array, lengths):
            return Ragged(array, ops.asarray1i(lengths)) if name == "windows" else array

        def learnt():
            nodes = [node for layer in both for node in layer.walk()]
            found = [node.get_grad(each).get() for node in nodes for each in node.param_names]
            for node in nodes:
                for each in node.param_names:
                    node.set_grad(each, 0 * node.get_grad(each))
            return found

        outputs, gradients = [], []
        for layer, of_layer, n in zip(both, rows, lengths):
            Y, backprop = layer.begin_update(given(X[of_layer], [n]))
            dY = drawn(ops, 70, rows_of(Y).shape[1])[of_layer]
            outputs.append(rows_of(Y).get())
            gradients.append(rows_of(backprop(given(dY, [n]))).get())
        alone = learnt()
        twins = TwinLayers(both, n_first)
        Y, backprop = module.forward_on_device(twins, given(X, lengths), True)
        dX = backprop(given(drawn(ops, 70, rows_of(Y).shape[1]), lengths))
    for found, wanted in ((Y, outputs), (dX, gradients)):
        close(rows_of(found).get(), np.concatenate(wanted))
    for one, other in zip(learnt(), alone):
        close(one, other)


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)


def test_twin_layers_differ_in_nothing_but_weights():
    layers = [Linear(4, 8), Linear(4, 8), Linear(5, 8), ResidualFeedForward(4), WindowBlock(4)]
    assert [are_twins(layers[0], each) for each in layers] == [True, True, False, False, False]
    assert not are_twins(WindowBlock(4, window_size=2), WindowBlock(4, window_size=1))
    assert not are_twins(ResidualFeedForward(4, 5), ResidualFeedForward(4, 6))
