"""Memory that is freed and soon needed again stays with the process."""

import ctypes
from functools import lru_cache

# glibc's numbers of these settings, and the highest it takes for the first.
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
_LARGEST, _MOST_KEPT = 32 << 20, 1 << 30


@lru_cache(maxsize=None)
def keep_memory() -> bool:
    """Let glibc keep freed memory, from now on and for all of the process.

    It hands large arrays back to the system as they are freed and asks for them again in
    the next step, which then fills them with zeros page by page: a fifth of the time of a
    training step, in a part of the kernel that threads wait for each other at. The most
    memory that a run takes stays the same.

    RETURNS (bool): Whether it could be done; other C libraries have no such setting.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    is_set = [mallopt(_MMAP_THRESHOLD, _LARGEST), mallopt(_TRIM_THRESHOLD, _MOST_KEPT)]
    return all(is_set)
