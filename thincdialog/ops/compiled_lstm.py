"""LSTMs that run compiled."""

from typing import Any, List, NamedTuple, Sequence, Tuple

import numpy

from .compiled import load_kernels

_SWAPPED = [1, 0, 2, 3]  # Thinc's gates are in the order f, i, o, g; the kernels' i, f, o, g.


class LSTMRun(NamedTuple):
    """What was computed in one direction, packed step by step.

    G (Floats2d): Gates i, f, o, g side by side, shape (n_rows, 4 nH).
    C (Floats2d): Cells, shape (n_rows, nH).
    T (Floats2d): tanh of the cells.
    H (Floats2d): Outputs.
    """

    G: Any
    C: Any
    T: Any
    H: Any


class CompiledLSTM:
    """Part of ``DialogFastOps``: all steps of an LSTM in one call, and Thinc's ``LSTM.v1``, whose
    gradient is right here (NumpyOps' of Thinc 8.3 leaves out a step and adds the weights)."""

    gemm: Any

    def lstm_steps(self, G: Any, U: Any, sizes: Sequence[int], start: Any = None) -> LSTMRun:
        """Run over all steps.

        G (Floats2d): W x + b, shape (n_rows, 4 nH), float32; is changed to the gates.
        U (Floats2d): Shape (4 nH, nH).
        sizes (Sequence[int]): Rows of each step, never more than of the one before.
        start (Optional[Tuple[Floats1d, Floats1d]]): Output and cell before the first
            step, shape (nH,); zeros if None.
        """
        C, T, H = (numpy.empty((G.shape[0], U.shape[1]), dtype="f") for _ in range(3))
        Ut = numpy.ascontiguousarray(U.T)
        steps = numpy.asarray(sizes, dtype="i8")
        load_kernels("recurrent").lstm(G, Ut, *_start(U, start), steps, C, T, H)
        return LSTMRun(G, C, T, H)

    def backprop_lstm_steps(
        self, dH: Any, U: Any, sizes: Sequence[int], run: LSTMRun, start: Any = None
    ) -> Tuple[Any, Any]:
        """Go back through all steps.

        dH (Floats2d): Gradient of the outputs, shape (n_rows, nH), float32.
        U, sizes, start: As for ``lstm_steps``, which gave ``run``.
        RETURNS (Tuple[Floats2d, Floats2d]): Gradient before the gates' activation, shape
            (n_rows, 4 nH), and the outputs of the step before, (n_rows, nH).
        """
        dG, before = numpy.empty_like(run.G), numpy.empty_like(run.H)
        U, steps = numpy.ascontiguousarray(U), numpy.asarray(sizes, dtype="i8")
        of_run = (*_start(U, start), steps, *run)
        load_kernels("recurrent").backprop_lstm(dH, U, *of_run, dG, before)
        return dG, before

    def lstm_forward_inference(self, params: Any, H0: Any, C0: Any, X: Any, size_at_t: Any) -> Any:
        return self.lstm_forward_training(params, H0, C0, X, size_at_t)[0]

    def lstm_forward_training(
        self, params: Any, H0: Any, C0: Any, X: Any, size_at_t: Any
    ) -> Tuple[Any, Tuple]:
        depth, n_directions, nO = H0.shape
        orders = [numpy.arange(X.shape[0]), _backwards(size_at_t)]
        # Of each direction of each layer: its input in the order of its steps, what was
        # computed, and where it started.
        layers: List[List[Tuple[Any, LSTMRun, Any]]] = []
        for layer, weights in enumerate(_layers(params, H0.shape, X.shape[1])):
            Y = numpy.empty((X.shape[0], n_directions * nO), dtype="f")
            layers.append([])
            for side, (W, U, b) in enumerate(weights):
                rows = X[orders[side]]
                G = self.gemm(rows, W, trans2=True)  # (n_rows, 4 nO)
                G += b
                # NumpyOps takes the cells from H0 and the outputs from C0, too.
                start = (C0[layer, side], H0[layer, side])
                run = self.lstm_steps(G, U, size_at_t, start)
                Y[orders[side], side * nO : (side + 1) * nO] = run.H
                layers[-1].append((rows, run, start))
            X = Y  # (n_rows, n_directions * nO)
        return X, (layers, orders, H0.shape)

    def backprop_lstm(
        self, dY: Any, lengths: Any, params: Any, fwd_state: Tuple
    ) -> Tuple[Any, Any]:
        layers, orders, shape = fwd_state
        nO = shape[2]
        gradients: List[Any] = []
        all_weights = _layers(params, shape, layers[0][0][0].shape[1])
        for weights, directions in reversed(list(zip(all_weights, layers))):
            dX = numpy.zeros((dY.shape[0], weights[0][0].shape[1]), dtype="f")
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


def _start(U: Any, start: Any) -> List[Any]:
    if start is None:
        return [numpy.zeros((U.shape[1],), dtype="f") for _ in range(2)]
    return [numpy.ascontiguousarray(array, dtype="f") for array in start]


def _swap(weights: Any) -> Any:
    """From one order of the gates to the other."""
    return weights.reshape((4, -1, *weights.shape[1:]))[_SWAPPED].reshape(weights.shape)


def _layers(params: Any, shape: Tuple[int, int, int], nI: int) -> List[List[Any]]:
    """The weights of each direction of each layer, gates in the kernels' order: W (4 nO, nI),
    U (4 nO, nO), b (4 nO,)."""
    depth, n_directions, nO = shape
    place = 0

    def take(*size: int) -> Any:
        nonlocal place
        first, place = place, place + int(numpy.prod(size))
        return _swap(params[first:place].reshape(size))

    def direction(width: int) -> Tuple[Any, Any, Any]:
        W, b_input = take(4 * nO, width), take(4 * nO)
        return W, take(4 * nO, nO), b_input + take(4 * nO)

    widths = [nI, *[nO * n_directions] * (depth - 1)]
    return [[direction(width) for _ in range(n_directions)] for width in widths]


def _backwards(sizes: Any) -> Any:
    """Rows in the order of steps from the ends; as many in each step as from the beginnings."""
    sizes = numpy.asarray(sizes, dtype="i8")
    columns = numpy.arange(sizes.max(initial=0))
    lengths = (sizes[:, None] > columns).sum(axis=0)
    steps = numpy.arange(sizes.shape[0])[:, None]
    rows = (numpy.cumsum(sizes) - sizes)[lengths - 1 - steps] + columns
    return rows[steps < lengths]
