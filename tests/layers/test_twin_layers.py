"""Layers alike that share a batch give what each gives alone."""

from contextlib import nullcontext

import numpy as np
import pytest
from thinc.api import Ragged

from tests.ops.array_backends import backend
from thincdialog.layers import feed_forward, linear, window_block
from thincdialog.layers.feed_forward import ResidualFeedForward
from thincdialog.layers.linear import Linear
from thincdialog.layers.twin_layers import TwinLayers, are_twins
from thincdialog.layers.window_block import WindowBlock
from thincdialog.ops.gpu.twins import Twins, add_products, lie_apart

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


@pytest.mark.gpu
@pytest.mark.parametrize("is_turned", [False, True])
def test_twin_layers_whose_weights_lie_in_any_order(is_turned):
    """In one product where the second lies behind the first, as cuBLAS wants it, and in two."""
    cupy = pytest.importorskip("cupy")
    with backend(0) as ops:
        X, W, dW = drawn(ops, 12, 8), drawn(ops, 2, 5, 8), ops.alloc3f(2, 5, 8)
        order = [1, 0] if is_turned else [0, 1]
        twins, gradients = (Twins(*(each[at] for at in order), 6) for each in (W, dW))
        ops.product(X, twins, trans2=True)
        counted = getattr(cupy, "counted", nullcontext)
        with counted() as counts:
            Y = ops.product(X, twins, trans2=True)
            ops.add_product(gradients, Y, X, trans1=True)
        assert not counts or counts.launches == (4 if is_turned else 2)
        for half, at in zip((slice(6), slice(6, 12)), order):
            close(Y[half].get(), X[half].get() @ W[at].get().T)
            close(dW[at].get(), Y[half].get().T @ X[half].get())


@pytest.mark.gpu
def test_twin_layers_products_of_matrices_in_disorder_are_refused():
    cupy = pytest.importorskip("cupy")
    if not hasattr(cupy, "is_stand_in"):
        pytest.skip("a GPU might do anything")
    with backend(0) as ops:
        x, y, out = (drawn(ops, 2, 4, 4) for _ in range(3))
        for turned in range(3):
            pairs = [(a[1], a[0]) if at == turned else (a[0], a[1])
                     for at, a in enumerate((out, x, y))]  # fmt: skip
            assert not lie_apart(*pairs)
            with pytest.raises(ValueError, match="INVALID_VALUE"):
                add_products(*pairs, False, False, 0.0)
        bits = ops.alloc1i(40).view("u1")
        apart = bits[:64].view("f"), bits[66:130].view("f")
        assert not lie_apart(apart)
