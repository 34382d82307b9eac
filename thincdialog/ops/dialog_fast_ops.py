"""CPU ops whose kernels are compiled and run without the GIL."""

from typing import Any, Tuple

import numpy

from ..registry import registry
from .compiled import INT32, are_alike, are_plain, load_kernels
from .compiled_ops import CompiledOps
from .dialog_ops import DialogNumpyOps


@registry.ops("thincdialog_fast")
class DialogFastOps(CompiledOps, DialogNumpyOps):
    """DialogNumpyOps with compiled kernels: faster on one core, and several threads can run
    them at once. Results are the same but for the last digits. A kernel is compiled for this
    machine when it is called first, in about a second, and is kept on disk.

    device_type (DeviceTypes): "cpu".
    device_id (int): -1.
    use_blis (bool): Use BLIS for ``gemm``; it is slower than NumPy's.
    RAISES (MissingPackageError): If numba is not installed.
    """

    name = "thincdialog_fast"
    has_compiled_kernels = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        load_kernels("rows")
        super().__init__(*args, **kwargs)

    def gemm(
        self, x: Any, y: Any, out: Any = None, trans1: bool = False, trans2: bool = False
    ) -> Any:
        if self.has_exact_products or self.use_blis or not (x.ndim == y.ndim == 2):
            return super().gemm(x, y, out=out, trans1=trans1, trans2=trans2)
        # ``dot``, which NumpyOps call, fills the result with zeros first, with the GIL.
        return numpy.matmul(x.T if trans1 else x, y.T if trans2 else y, out=out)

    def softmax(
        self, x: Any, *, inplace: bool = False, axis: int = -1, temperature: float = 1.0
    ) -> Any:
        if not _has_rows(x, axis):
            return super().softmax(x, inplace=inplace, axis=axis, temperature=temperature)
        Y = numpy.empty_like(x)
        load_kernels("rows").softmax(_rows(x), 1.0 / temperature, _rows(Y))
        return Y

    def backprop_softmax(self, Y: Any, dY: Any, *, axis: int = -1, temperature: float = 1.0) -> Any:
        if not (_has_rows(Y, axis) and are_alike(Y, dY)):
            return super().backprop_softmax(Y, dY, axis=axis, temperature=temperature)
        dX = numpy.empty_like(Y)
        load_kernels("rows").backprop_softmax(_rows(Y), _rows(dY), 1.0 / temperature, _rows(dX))
        return dX

    def maxout(self, X: Any) -> Tuple[Any, Any]:
        if not (are_plain(X, ndim=3) and X.shape[2]):
            return super().maxout(X)
        best = numpy.empty(X.shape[:2], dtype="f")
        which = numpy.empty(X.shape[:2], dtype="i")
        load_kernels("rows").maxout(_rows(X), best.reshape(-1), which.reshape(-1))
        return best, which

    def backprop_maxout(self, dY: Any, which: Any, P: int) -> Any:
        if are_plain(dY) and which.dtype == numpy.int32 and which.flags.c_contiguous and P:
            dX = numpy.zeros((*dY.shape, P), dtype="f")
            is_good = load_kernels("rows").backprop_maxout(
                dY.reshape(-1), which.reshape(-1), _rows(dX)
            )
            if is_good:
                return dX
        return super().backprop_maxout(dY, which, P)

    def dropout_from(self, levels: Any, dropped: int, kept: Any) -> numpy.ndarray:
        mask = numpy.empty(levels.shape, dtype="f")
        load_kernels("rows").dropout_mask(
            levels.reshape(-1), dropped, float(kept), mask.reshape(-1)
        )
        return mask

    def gather_add(self, table: Any, indices: Any) -> Any:
        if not (are_plain(table, ndim=2) and are_plain(indices, dtype=INT32, ndim=2)):
            return super().gather_add(table, indices)
        Y = numpy.zeros((indices.shape[0], table.shape[1]), dtype="f")
        lengths = numpy.full(indices.shape[0], indices.shape[1], dtype="i")
        if not load_kernels("tables").sum_bags(table, indices.reshape(-1), lengths, Y):
            raise beyond(table)
        return Y

    def scatter_add(self, table: Any, indices: Any, values: Any) -> Any:
        if not (
            are_plain(table, values, ndim=2)
            and are_plain(indices, dtype=INT32, ndim=1)
            and values.shape == (indices.shape[0], table.shape[1])
        ):
            return super().scatter_add(table, indices, values)
        if not load_kernels("tables").scatter_add(table, indices, values):
            raise beyond(table)
        return None

    def adam(
        self,
        weights: Any,
        gradient: Any,
        mom1: Any,
        mom2: Any,
        beta1: float,
        beta2: float,
        eps: float,
        learn_rate: float,
        mod_rate: float = 1.0,
    ) -> Tuple[Any, Any, Any, Any]:
        arrays = (weights, gradient, mom1, mom2)
        if not are_alike(*arrays):
            return super().adam(*arrays, beta1, beta2, eps, learn_rate, mod_rate)
        settings = (1.0, beta1, beta2, 0.0, eps, learn_rate, 1.0, 0.0, 0.0)
        flat = [array.reshape(-1) for array in arrays]
        load_kernels("steps").adam_dense(*flat, tuple(map(float, settings)), True)
        return arrays


def _has_rows(X: Any, axis: int) -> bool:
    return are_plain(X) and X.ndim > 0 and axis in (-1, X.ndim - 1) and X.shape[-1] > 0


def _rows(X: Any) -> Any:
    return X.reshape((-1, X.shape[-1]))


def beyond(table: Any) -> IndexError:
    """The error of a row number that the table does not have."""
    return IndexError(f"row numbers must be from 0 to {table.shape[0] - 1}")
