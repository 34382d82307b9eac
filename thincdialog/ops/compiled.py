"""Access to compiled kernels, and checks of the arrays for them."""

from functools import lru_cache
from importlib import import_module
from typing import Any, Optional

import numpy

from ..errors import MissingPackageError


@lru_cache(maxsize=None)
def load_kernels(family: str) -> Any:
    """Return a module of compiled kernels.

    family (str): Name of a file in ``ops/kernels``.
    RETURNS (Any): The module; each kernel is compiled at its first call.
    RAISES (MissingPackageError): If numba is not installed.
    """
    try:
        import numba  # noqa: F401
    except ImportError:
        raise MissingPackageError("numba", "fast", f"compiled kernels ({family})") from None
    return import_module(f".kernels.{family}", __package__)


def are_plain(*arrays: Any, ndim: Optional[int] = None) -> bool:
    """Return whether kernels accept these arrays: contiguous NumPy arrays, float32.

    ndim (Optional[int]): Required number of dimensions; None for any.
    """
    return all(
        isinstance(array, numpy.ndarray)
        and array.dtype == numpy.float32
        and array.flags.c_contiguous
        and ndim in (None, array.ndim)
        for array in arrays
    )


def are_alike(first: Any, *others: Any) -> bool:
    """Return whether kernels accept these arrays for computations cell by cell: float32, same
    shape."""
    return are_plain(first, *others) and all(array.shape == first.shape for array in others)
