"""Thinc's LSTM, compiled."""

from typing import Any, List, NamedTuple, Tuple

import numpy

from .compiled_recurrence import CompiledRecurrence, LSTMRun

# Thinc's parameters have the gates in the order f, i, o, g; the kernels i, f, o, g.
_SWAPPED = [1, 0, 2, 3]


class _Weights(NamedTuple):
    W: Any  # (4 nO, nI), gates in the kernels' order, like the others
    U: Any  # (4 nO, nO)
    b: Any  # (4 nO,)


class _Direction(NamedTuple):
    """What one direction of one layer has computed."""

    X: Any  # in the order of its steps
    run: LSTMRun
    start: Tuple[Any, Any]


class CompiledLSTM(CompiledRecurrence):
    """Part of ``DialogFastOps``: what Thinc's ``LSTM.v1`` is made of. Its gradient is that
    of its output, which NumpyOps' is not (Thinc 8.3: it leaves out the first step and
    adds the weights)."""

    gemm: Any

    def lstm_forward_inference(self, params: Any, H0: Any, C0: Any, X: Any, size_at_t: Any) -> Any:
        return self.lstm_forward_training(params, H0, C0, X, size_at_t)[0]

    def lstm_forward_training(
        self, params: Any, H0: Any, C0: Any, X: Any, size_at_t: Any
    ) -> Tuple[Any, Tuple]:
        depth, n_directions, nO = H0.shape
        orders = [numpy.arange(X.shape[0]), _backwards(size_at_t)]
        layers: List[List[_Direction]] = []
        for layer, weights in enumerate(_layers(params, H0.shape, X.shape[1])):
            Y = numpy.empty((X.shape[0], n_directions * nO), dtype="f")
            layers.append([])
            for side, (W, U, b) in enumerate(weights):
                rows = X[orders[side]]
                G = self.gemm(rows, W, trans2=True)
                G += b
                # NumpyOps takes the cells from H0 and the outputs from C0, too.
                start = (C0[layer, side], H0[layer, side])
                run = self.lstm_steps(G, U, size_at_t, start)
                Y[orders[side], side * nO : (side + 1) * nO] = run.H
                layers[-1].append(_Direction(rows, run, start))
            X = Y
        return X, (layers, orders, H0.shape)

    def backprop_lstm(
        self, dY: Any, lengths: Any, params: Any, fwd_state: Tuple
    ) -> Tuple[Any, Any]:
        layers, orders, shape = fwd_state
        nO = shape[2]
        gradients: List[Any] = []
        all_weights = _layers(params, shape, layers[0][0].X.shape[1])
        for weights, directions in reversed(list(zip(all_weights, layers))):
            dX = numpy.zeros((dY.shape[0], weights[0].W.shape[1]), dtype="f")
            of_layer = []
            for side, ((W, U, _), (rows, run, start)) in enumerate(zip(weights, directions)):
                order = orders[side]
                dH = numpy.ascontiguousarray(dY[order, side * nO : (side + 1) * nO])
                dG, before = self.backprop_lstm_steps(dH, U, lengths, run, start)
                dX[order] += self.gemm(dG, W)
                dW, dU = (self.gemm(dG, array, trans1=True) for array in (rows, before))
                of_layer += [_swap(dW), _swap(dG.sum(axis=0)), _swap(dU)]
                of_layer.append(numpy.zeros((4 * nO,), dtype="f"))
            gradients = of_layer + gradients
            dY = dX
        return dY, numpy.concatenate([part.ravel() for part in gradients])


def _swap(weights: Any) -> Any:
    """From one order of the gates to the other."""
    return weights.reshape((4, -1, *weights.shape[1:]))[_SWAPPED].reshape(weights.shape)


def _layers(params: Any, shape: Tuple[int, int, int], nI: int) -> List[List[_Weights]]:
    """The weights of each direction of each layer."""
    depth, n_directions, nO = shape
    layers: List[List[_Weights]] = []
    place = 0

    def take(*size: int) -> Any:
        nonlocal place
        first, place = place, place + int(numpy.prod(size))
        return _swap(params[first:place].reshape(size))

    for layer in range(depth):
        width = nI if layer == 0 else nO * n_directions
        layers.append([])
        for _ in range(n_directions):
            W, b_input, U, b_hidden = (
                take(4 * nO, width),
                take(4 * nO),
                take(4 * nO, nO),
                take(4 * nO),
            )
            layers[-1].append(_Weights(W, U, b_input + b_hidden))
    return layers


def _backwards(sizes: Any) -> Any:
    """Rows in the order of steps from the sequences' ends; each step has as many as from
    their beginnings."""
    sizes = numpy.asarray(sizes, dtype="i8")
    columns = numpy.arange(sizes.max(initial=0))
    lengths = (sizes[:, None] > columns).sum(axis=0)
    steps = numpy.arange(sizes.shape[0])[:, None]
    rows = (numpy.cumsum(sizes) - sizes)[lengths - 1 - steps] + columns
    return rows[steps < lengths]
