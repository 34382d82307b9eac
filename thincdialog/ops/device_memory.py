"""Size of a GPU's memory pool, and the error for a full GPU."""

from typing import Any, Optional

from thinc.api import get_array_module
from thinc.compat import cupy, has_cupy
from thinc.util import is_cupy_array

from ..errors import DeviceMemoryError

# Messages of CUDA and cuBLAS if they cannot allocate memory outside of the pool.
_NO_ROOM = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


def held_bytes(array: Any) -> Optional[int]:
    """Return the number of bytes that the memory pool has allocated on the array's GPU. This is the
    peak use, because the pool keeps memory that was freed. None on the CPU.

    array (Any): Array on a GPU or on the CPU.
    """
    if not is_cupy_array(array):
        return None
    return int(get_array_module(array).get_default_memory_pool().total_bytes())


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that a GPU has no memory left."""
    if has_cupy and isinstance(error, cupy.cuda.memory.OutOfMemoryError):
        return True
    is_of_cupy = type(error).__module__.startswith("cupy")
    return is_of_cupy and any(each in str(error) for each in _NO_ROOM)


def gpu_memory_error(text: str) -> DeviceMemoryError:
    """Return the error for something that does not fit into the GPU's memory.

    text (str): The thing that does not fit, and advice for the user.
    """
    held = cupy.get_default_memory_pool().total_bytes() / 1e6
    return DeviceMemoryError(f"The GPU's memory ({held:,.0f} MB in use) has no room for {text}")
