"""Finds compiled kernels, and says what arrays they can take."""

from functools import lru_cache
from importlib import import_module
from typing import Any, Optional

import numpy

from ..errors import MissingPackageError

FLOAT32, INT32 = numpy.dtype("f"), numpy.dtype("i")


@lru_cache(maxsize=None)
def load_kernels(family: str) -> Any:
    """The module of some compiled kernels.

    family (str): Name of a file in ``ops/kernels``.
    RETURNS (Any): The module; its kernels are compiled when they are called first.
    RAISES (MissingPackageError): If numba is not installed.
    """
    try:
        import numba  # noqa: F401
    except ImportError:
        raise MissingPackageError("numba", "fast", f"compiled kernels ({family})") from None
    return import_module(f".kernels.{family}", __package__)


def are_plain(*arrays: Any, dtype: numpy.dtype = FLOAT32, ndim: Optional[int] = None) -> bool:
    """Whether kernels can take these: NumPy's, contiguous, of a type.

    ndim (Optional[int]): Number of dimensions; None for any.
    """
    return all(
        isinstance(array, numpy.ndarray)
        and array.dtype == dtype
        and array.flags.c_contiguous
        and ndim in (None, array.ndim)
        for array in arrays
    )


def are_alike(first: Any, *others: Any) -> bool:
    """Whether kernels can take these as cells that belong together."""
    return are_plain(first, *others) and all(array.shape == first.shape for array in others)
