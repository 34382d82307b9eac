"""CPU ops with compiled kernels, which run without the GIL."""

from typing import Any, Callable, Tuple

import numpy

from ..registry import registry
from .compiled import are_alike, are_plain, load_kernels
from .dialog_ops import DialogNumpyOps


def _activation(name: str) -> Tuple[Callable, Callable]:
    """Return methods for an activation without settings and for its gradient."""

    def activation(self: Any, X: Any, inplace: bool = False) -> Any:
        return self._cells(name, (X,), X if inplace else None)

    def gradient(self: Any, dY: Any, X: Any, inplace: bool = False) -> Any:
        return self._cells(f"backprop_{name}", (dY, X), dY if inplace else None)

    return activation, gradient


@registry.ops("thincdialog_fast")
class DialogFastOps(DialogNumpyOps):
    """Extend DialogNumpyOps with compiled kernels, which are faster on one core and can run in
    several threads at once. Results differ only in the last digits. A kernel is compiled for this
    machine at its first call, in about a second, and cached on disk.

    device_type (DeviceTypes): "cpu".
    device_id (int): -1.
    RAISES (MissingPackageError): If numba is not installed.
    """

    name = "thincdialog_fast"

    relu, backprop_relu = _activation("relu")
    gelu, backprop_gelu = _activation("gelu")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        load_kernels("rows")
        super().__init__(*args, **kwargs)

    def gemm(
        self, x: Any, y: Any, out: Any = None, trans1: bool = False, trans2: bool = False
    ) -> Any:
        if self.has_exact_products or not (x.ndim == y.ndim == 2):
            return super().gemm(x, y, out=out, trans1=trans1, trans2=trans2)
        # Not ``dot``, as in NumpyOps: it first fills the result with zeros while it holds the GIL.
        return numpy.matmul(x.T if trans1 else x, y.T if trans2 else y, out=out)

    def maxout(self, X: Any) -> Tuple[Any, Any]:
        if not (are_plain(X, ndim=3) and X.shape[2]):
            return super().maxout(X)
        best = numpy.empty(X.shape[:2], dtype="f")
        which = numpy.empty(X.shape[:2], dtype="i")
        load_kernels("rows").maxout(_rows(X), best.reshape(-1), which.reshape(-1))
        return best, which

    def reduce_sum(self, X: Any, lengths: Any) -> Any:
        if not X.shape[0]:  # Thinc refuses sequences that are all empty.
            return self.alloc2f(lengths.shape[0], X.shape[1])
        return super().reduce_sum(X, lengths)

    def reduce_mean(self, X: Any, lengths: Any) -> Any:
        Y = self.reduce_sum(X, lengths)
        Y *= (1 / numpy.maximum(lengths, 1)).astype("f")[:, None]
        return Y

    def _cells(self, name: str, arrays: Tuple[Any, ...], out: Any) -> Any:
        """Call a kernel for all cells of the arrays.

        out (Optional[FloatsXd]): One of the arrays, which is overwritten; None for a new array.
        """
        if not are_alike(*arrays):
            return getattr(super(), name)(*arrays, inplace=out is not None)
        if out is None:
            out = numpy.empty(arrays[0].shape, dtype="f")
        cells = [array.reshape(-1) for array in arrays]
        getattr(load_kernels("activations"), name)(*cells, out.reshape(-1))
        return out


def is_compiled(ops: Any) -> bool:
    """Return whether ops have compiled kernels for their arrays."""
    return isinstance(ops, DialogFastOps)


def _rows(X: Any) -> Any:
    return X.reshape((-1, X.shape[-1]))
