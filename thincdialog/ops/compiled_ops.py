"""Activations, reductions of sequences, windows and LSTM steps that run compiled."""

from typing import Any, Callable, NamedTuple, Optional, Sequence, Tuple

import numpy

from .compiled import INT32, are_alike, are_plain, load_kernels

_MOST = numpy.iinfo("i").max


class LSTMRun(NamedTuple):
    """The arrays of one direction, packed step by step.

    G (Floats2d): Gates i, f, o, g side by side, shape (n_rows, 4 nH).
    C (Floats2d): Cells, shape (n_rows, nH).
    T (Floats2d): tanh of the cells.
    H (Floats2d): Outputs.
    """

    G: Any
    C: Any
    T: Any
    H: Any


def _activation(name: str) -> Tuple[Callable, Callable]:
    """The methods of an activation without settings, and of its gradient."""

    def activation(self: Any, X: Any, inplace: bool = False) -> Any:
        return self._cells(name, (X,), X if inplace else None)

    def gradient(self: Any, dY: Any, X: Any, inplace: bool = False) -> Any:
        return self._cells(f"backprop_{name}", (dY, X), dY if inplace else None)

    return activation, gradient


def _reduction(name: str, *, is_mean: bool) -> Tuple[Callable, Callable]:
    """The methods of a sum or mean, and of its gradient."""

    def reduce(self: Any, X: Any, lengths: Any) -> Any:
        if not _fit(X, lengths, 0):
            return getattr(super(CompiledOps, self), name)(X, lengths)
        Y = numpy.zeros((lengths.shape[0], X.shape[1]), dtype="f")
        load_kernels("sequences").reduce_sum(X, lengths, is_mean, Y)
        return Y

    def gradient(self: Any, dY: Any, lengths: Any) -> Any:
        if not _are_sequences(dY, lengths, 0):
            return getattr(super(CompiledOps, self), f"backprop_{name}")(dY, lengths)
        dX = numpy.empty((int(lengths.sum()), dY.shape[1]), dtype="f")
        load_kernels("sequences").backprop_reduce_sum(dY, lengths, is_mean, dX)
        return dX

    return reduce, gradient


class CompiledOps:
    """Part of ``DialogFastOps``: Thinc's activations that our layers use, its reductions over
    Ragged and its windows, each with its gradient, and all steps of an LSTM in one call. Arrays
    that are not contiguous, or of another type or shape, are left to Thinc's own ops."""

    relu, backprop_relu = _activation("relu")
    gelu, backprop_gelu = _activation("gelu")
    swish, _ = _activation("swish")
    reduce_sum, backprop_reduce_sum = _reduction("reduce_sum", is_mean=False)
    reduce_mean, backprop_reduce_mean = _reduction("reduce_mean", is_mean=True)

    def backprop_swish(self, dY: Any, X: Any, Y: Any, inplace: bool = False) -> Any:
        return self._cells("backprop_swish", (dY, X, Y), dY if inplace else None)

    def sigmoid(self, X: Any, *, inplace: bool = False) -> Any:
        return self._cells("sigmoid", (X,), X if inplace else None)

    def backprop_sigmoid(self, dY: Any, Y: Any, *, inplace: bool = False) -> Any:
        # Thinc's writes over Y.
        return self._cells("backprop_sigmoid", (dY, Y), Y if inplace else None)

    def _cells(self, name: str, arrays: Tuple[Any, ...], out: Any) -> Any:
        """Call a kernel for each cell of the arrays.

        out (Optional[FloatsXd]): Where the result goes, one of the arrays; None for a new one.
        """
        if not are_alike(*arrays):
            return getattr(super(), name)(*arrays, inplace=out is not None)
        if out is None:
            out = numpy.empty(arrays[0].shape, dtype="f")
        cells = [array.reshape(-1) for array in arrays]
        getattr(load_kernels("activations"), name)(*cells, out.reshape(-1))
        return out

    def reduce_max(self, X: Any, lengths: Any) -> Tuple[Any, Any]:
        if not _fit(X, lengths, 1):
            return super().reduce_max(X, lengths)  # type: ignore[misc]
        Y = numpy.empty((lengths.shape[0], X.shape[1]), dtype="f")
        which = numpy.zeros(Y.shape, dtype="i")
        load_kernels("sequences").reduce_max(X, lengths, Y, which)
        return Y, which

    def backprop_reduce_max(self, d_maxes: Any, which: Any, lengths: Any) -> Any:
        if (
            _are_sequences(d_maxes, lengths, 1)
            and are_plain(which, dtype=INT32)
            and which.shape == d_maxes.shape
        ):
            dX = numpy.zeros((int(lengths.sum()), d_maxes.shape[1]), dtype="f")
            if load_kernels("sequences").backprop_reduce_max(d_maxes, which, lengths, dX):
                return dX
        return super().backprop_reduce_max(d_maxes, which, lengths)  # type: ignore[misc]

    def seq2col(self, seq: Any, nW: int, *, lengths: Optional[Any] = None) -> Any:
        sizes = _one(seq) if lengths is None else lengths
        if not _fit(seq, sizes, 0, whole=True):
            return super().seq2col(seq, nW, lengths=lengths)  # type: ignore[misc]
        Y = numpy.zeros((seq.shape[0], seq.shape[1] * (2 * nW + 1)), dtype="f")
        load_kernels("sequences").seq2col(seq, nW, sizes, Y, False)
        return Y

    def backprop_seq2col(self, dY: Any, nW: int, *, lengths: Optional[Any] = None) -> Any:
        sizes = _one(dY) if lengths is None else lengths
        if not _fit(dY, sizes, 0, whole=True):
            return super().backprop_seq2col(dY, nW, lengths=lengths)  # type: ignore[misc]
        dX = numpy.zeros((dY.shape[0], dY.shape[1] // (2 * nW + 1)), dtype="f")
        load_kernels("sequences").seq2col(dX, nW, sizes, dY, True)
        return dX

    def lstm_steps(self, G: Any, U: Any, sizes: Sequence[int]) -> LSTMRun:
        """Run over all steps, from outputs and cells of 0.

        G (Floats2d): W x + b, shape (n_rows, 4 nH), float32; is changed to the gates.
        U (Floats2d): Shape (4 nH, nH).
        sizes (Sequence[int]): Rows of each step, never more than of the one before.
        """
        C, T, H = (numpy.empty((G.shape[0], U.shape[1]), dtype="f") for _ in range(3))
        Ut = numpy.ascontiguousarray(U.T)
        load_kernels("recurrent").lstm(G, Ut, numpy.asarray(sizes, dtype="i8"), C, T, H)
        return LSTMRun(G, C, T, H)

    def backprop_lstm_steps(
        self, dH: Any, U: Any, sizes: Sequence[int], run: LSTMRun
    ) -> Tuple[Any, Any]:
        """Go back through all steps.

        dH (Floats2d): Gradient of the outputs, shape (n_rows, nH), float32.
        U, sizes: As for ``lstm_steps``, which gave ``run``.
        RETURNS (Tuple[Floats2d, Floats2d]): Gradient before the gates' activation, shape
            (n_rows, 4 nH), and the outputs of the step before, (n_rows, nH).
        """
        dG, before = numpy.empty_like(run.G), numpy.empty_like(run.H)
        U, steps = numpy.ascontiguousarray(U), numpy.asarray(sizes, dtype="i8")
        load_kernels("recurrent").backprop_lstm(dH, U, steps, *run, dG, before)
        return dG, before


def _one(X: Any) -> Any:
    """All rows are one sequence."""
    return numpy.full((1,), X.shape[0], dtype="i")


def _are_plain(X: Any, lengths: Any) -> bool:
    return are_plain(X, ndim=2) and are_plain(lengths, dtype=INT32, ndim=1)


def _fit(X: Any, lengths: Any, least: int, *, whole: bool = False) -> bool:
    """Whether X has the rows (``whole``: and no more) of sequences of at least such lengths."""
    return (
        _are_plain(X, lengths)
        and load_kernels("sequences").fit(lengths, least, X.shape[0])
        and (not whole or int(lengths.sum()) == X.shape[0])
    )


def _are_sequences(dY: Any, lengths: Any, least: int) -> bool:
    """Whether each row of dY belongs to a sequence of at least as many rows."""
    return (
        _are_plain(dY, lengths)
        and lengths.shape[0] == dY.shape[0]
        and load_kernels("sequences").fit(lengths, least, _MOST)
    )
