"""What a GPU's memory pool holds, and what is done when it has no room."""

import gc
from typing import Any, Optional

from thinc.api import get_array_module
from thinc.util import is_cupy_array


def held_bytes(array: Any) -> Optional[int]:
    """What the pool has taken of the memory of a GPU: as much as was needed at once, for the
    pool keeps what is free again. None on the CPU.

    array (Any): Which lies there, or not.
    """
    if not is_cupy_array(array):
        return None
    return int(_pool(array).total_bytes())


def is_out_of_memory(error: BaseException, array: Any) -> bool:
    """Whether it is a GPU's error that it has no room left.

    array (Any): Which lies on the device.
    """
    if not is_cupy_array(array):
        return False
    return isinstance(error, get_array_module(array).cuda.memory.OutOfMemoryError)


def free(array: Any) -> None:
    """Give back all memory of a GPU that nobody uses, so that it can be cut anew.

    array (Any): Which lies on the device.
    """
    gc.collect()  # Arrays in circles of what is over.
    _pool(array).free_all_blocks()


def _pool(array: Any) -> Any:
    return get_array_module(array).get_default_memory_pool()
