"""Finds compiled kernels."""

from functools import lru_cache
from importlib import import_module
from typing import Any

from ..errors import MissingPackageError


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
