"""Bytes that a GPU's memory pool holds, and the error when the pool is full."""

from typing import Any, Optional

from thinc.api import get_array_module
from thinc.compat import cupy, has_cupy
from thinc.util import is_cupy_array

from ..errors import DeviceMemoryError

# What CUDA and cuBLAS say when there is no room for what they need in addition to the pool.
_NO_ROOM = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


def held_bytes(array: Any) -> Optional[int]:
    """What the pool has taken of the memory of a GPU: as much as was needed at once, for the
    pool keeps what is free again. None on the CPU.

    array (Any): Which lies there, or not.
    """
    if not is_cupy_array(array):
        return None
    return int(get_array_module(array).get_default_memory_pool().total_bytes())


def is_out_of_memory(error: BaseException) -> bool:
    """Whether it is a GPU's error that it has no room left."""
    if has_cupy and isinstance(error, cupy.cuda.memory.OutOfMemoryError):
        return True
    is_of_cupy = type(error).__module__.startswith("cupy")
    return is_of_cupy and any(each in str(error) for each in _NO_ROOM)


def no_room(text: str) -> DeviceMemoryError:
    """The error for what does not fit a GPU.

    text (str): What it is, and what to do.
    """
    held = cupy.get_default_memory_pool().total_bytes() / 1e6
    return DeviceMemoryError(f"The memory of the GPU ({held:,.0f} MB taken) has no room for {text}")
