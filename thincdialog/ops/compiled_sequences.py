"""Reductions over sequences, and windows, that run compiled."""

from typing import Any, Callable, Optional, Tuple

import numpy

from .compiled import INT32, are_alike, are_plain, load_kernels

_MOST = numpy.iinfo("i").max


def _reduction(name: str, *, is_mean: bool) -> Tuple[Callable, Callable]:
    """The methods of a sum or mean, and of its gradient."""

    def reduce(self: Any, X: Any, lengths: Any) -> Any:
        if not _fit(X, lengths, 0):
            return getattr(super(CompiledSequences, self), name)(X, lengths)
        Y = numpy.zeros((lengths.shape[0], X.shape[1]), dtype="f")
        load_kernels("sequences").reduce_sum(X, lengths, is_mean, Y)
        return Y

    def gradient(self: Any, dY: Any, lengths: Any) -> Any:
        if not _are_sequences(dY, lengths, 0):
            return getattr(super(CompiledSequences, self), f"backprop_{name}")(dY, lengths)
        dX = numpy.empty((int(lengths.sum()), dY.shape[1]), dtype="f")
        load_kernels("sequences").backprop_reduce_sum(dY, lengths, is_mean, dX)
        return dX

    return reduce, gradient


class CompiledSequences:
    """Part of ``DialogFastOps``: Thinc's reductions over Ragged and their gradients, softmax
    within sequences, and windows. What is not plain or does not fit goes to Thinc's own."""

    reduce_sum, backprop_reduce_sum = _reduction("reduce_sum", is_mean=False)
    reduce_mean, backprop_reduce_mean = _reduction("reduce_mean", is_mean=True)

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

    def softmax_sequences(
        self, Xs: Any, lengths: Any, *, inplace: bool = False, axis: int = -1
    ) -> Any:
        if not _fit(Xs, lengths, 0, whole=True):
            return super().softmax_sequences(  # type: ignore[misc]
                Xs, lengths, inplace=inplace, axis=axis
            )
        Y = numpy.empty_like(Xs)
        load_kernels("sequences").softmax_sequences(Xs, lengths, Y)
        return Y

    def backprop_softmax_sequences(self, dY: Any, Y: Any, lengths: Any) -> Any:
        if not (are_alike(dY, Y) and _fit(Y, lengths, 0, whole=True)):
            return super().backprop_softmax_sequences(dY, Y, lengths)  # type: ignore[misc]
        dX = numpy.empty_like(Y)
        load_kernels("sequences").backprop_softmax_sequences(dY, Y, lengths, dX)
        return dX

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
    """Whether each row of dY belongs to a sequence of at least so many rows."""
    return (
        _are_plain(dY, lengths)
        and lengths.shape[0] == dY.shape[0]
        and load_kernels("sequences").fit(lengths, least, _MOST)
    )
