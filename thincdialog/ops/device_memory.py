"""What a GPU's memory pool holds, and what is done when it has no room."""

import gc
from typing import Any, Callable, Optional, Sequence, TypeVar

import numpy as np
from thinc.api import get_array_module
from thinc.compat import cupy, has_cupy
from thinc.util import is_cupy_array

from ..errors import DeviceMemoryError

T = TypeVar("T")


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
    return bool(has_cupy) and isinstance(error, cupy.cuda.memory.OutOfMemoryError)


def no_room(text: str) -> DeviceMemoryError:
    """The error for what does not fit a GPU.

    text (str): What it is, and what to do.
    """
    held = cupy.get_default_memory_pool().total_bytes() / 1e6
    return DeviceMemoryError(f"The memory of the GPU ({held:,.0f} MB taken) has no room for {text}")


def in_parts_that_fit(
    n_rows: int,
    work: Callable[[Sequence[np.ndarray]], T],
    go_back: Callable[[], None],
    too_large: Callable[[], DeviceMemoryError],
) -> T:
    """What some work gives for all rows of a batch at once; if the memory of a GPU has no room,
    for two parts of them, then four, and so on.

    work (Callable): Gets the rows of each part, ascending.
    go_back (Callable): Undoes what it had done when it failed.
    too_large (Callable): Gives the error.
    RAISES (DeviceMemoryError): If a single row does not fit.
    """
    n_parts = 1
    while True:
        try:
            return work(np.array_split(np.arange(n_rows), n_parts))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        # Only now, as an error holds what was computed till then.
        go_back()
        gc.collect()  # Arrays in circles of what is over.
        cupy.get_default_memory_pool().free_all_blocks()
        if n_parts >= n_rows:
            raise too_large()
        n_parts = min(2 * n_parts, n_rows)
