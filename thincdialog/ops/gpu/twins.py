"""Weights of two layers alike that share a batch, and products with both at once."""

from typing import Any, NamedTuple, Tuple

import numpy


class Twins(NamedTuple):
    """A weight, or its gradient, of two layers alike. Kernels and products that take a layer's
    weights take those of twins, too.

    one, other (Any): Arrays of the same shape.
    n_first (int): Rows of the batch that belong to the one; the others to the other.
    """

    one: Any
    other: Any
    n_first: int

    @property
    def shape(self) -> Tuple[int, ...]:
        """Of each."""
        return self.one.shape

    def reshape(self, shape: Tuple[int, ...]) -> "Twins":
        """Each in another shape."""
        return Twins(self.one.reshape(shape), self.other.reshape(shape), self.n_first)


def halves(array: Any, n_first: int) -> Tuple[Any, Any]:
    """Of twins both; of a batch the rows of the one and of the other, contiguous."""
    if isinstance(array, Twins):
        return array[:2]
    import cupy

    array = cupy.ascontiguousarray(array, dtype="f")
    return array[:n_first], array[n_first:]


def lie_apart(*pairs: Any) -> bool:
    """Whether in each pair of arrays the second lies behind the first, as ``add_products`` needs:
    cuBLAS gets its distance, of which it is nowhere said that it may be negative."""
    return all(_stride(*pair) >= pair[0].size for pair in pairs)


def _stride(one: Any, other: Any) -> int:
    """Floats from one array to another; -1 if the other comes first, or between two floats."""
    n_floats, rest = divmod(other.data.ptr - one.data.ptr, one.itemsize)
    return -1 if rest else int(n_floats)


def add_products(out: Any, x: Any, y: Any, trans1: bool, trans2: bool, share: float) -> None:
    """Two products of the same sizes in one call of cuBLAS: out = share * out + x y.

    out, x, y (Tuple[Floats2d, Floats2d]): Contiguous, not empty, and such that they ``lie_apart``.
    trans1, trans2 (bool): Whether x and y are transposed.
    """
    from cupy.cuda import cublas, device

    flags = [cublas.CUBLAS_OP_T if trans else cublas.CUBLAS_OP_N for trans in (trans2, trans1)]
    (n_rows, n_columns), n_inner = out[0].shape, x[0].shape[0 if trans1 else 1]
    factors = numpy.array([1.0, share], dtype="f")
    # cuBLAS goes down columns: to it all matrices are transposed, and the second comes first.
    of_y, of_x, of_out = (
        (one.data.ptr, one.shape[1], _stride(one, other)) for one, other in (y, x, out)
    )
    at, step = factors.ctypes.data, factors.itemsize
    sizes = (n_columns, n_rows, n_inner)
    cublas.sgemmStridedBatched(
        device.get_cublas_handle(), *flags, *sizes, at, *of_y, *of_x, at + step, *of_out, 2
    )
