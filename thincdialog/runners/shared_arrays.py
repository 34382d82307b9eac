"""Arrays in memory that several processes share."""

import mmap
import os
import tempfile
import weakref
from multiprocessing import context, reduction
from typing import Any, Dict, List, Mapping, Tuple

import numpy

from ..errors import DialogError

# Each array begins at a cache line, so that no two arrays share one.
ALIGNMENT = 64

Layout = List[Tuple[str, Tuple[int, ...], str, int]]


class SharedArrays:
    """Named arrays in memory that is shared by the processes to which this object is sent.

    The memory has no name (it is from ``memfd_create``, or, where the system has none, a file
    that is deleted at once). So the system frees it when the last process that uses it ends, even
    if that process was killed, and it does not count towards the limit of /dev/shm, which is
    small in containers. (The standard library's ``shared_memory`` has neither property.) An array
    lives as long as there is a reference to it.

    arrays (Mapping[str, numpy.ndarray]): The initial values, which are copied.
    RAISES (DialogError): If memory is short, or a limit forbids it.
    """

    arrays: Dict[str, numpy.ndarray]

    def __init__(self, arrays: Mapping[str, numpy.ndarray]):
        layout: Layout = []
        size = 0
        for name, array in arrays.items():
            layout.append((name, array.shape, array.dtype.str, size))
            size += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        try:
            if hasattr(os, "memfd_create"):
                handle = os.memfd_create("thincdialog")
            else:
                with tempfile.TemporaryFile() as file:
                    handle = os.dup(file.fileno())
            weakref.finalize(self, os.close, handle)
            os.ftruncate(handle, max(1, size))
            self._take(handle, layout)
        except OSError as error:  # Limits of file size and of open files apply to it, too.
            raise DialogError(
                f"{size:,} bytes of memory cannot be shared with worker processes: "
                f"{error.strerror}. Raise the limit (ulimit -a shows all), or set "
                '[runner] executor = "thread".'
            ) from None
        for name, array in arrays.items():
            self.arrays[name][...] = array

    def _take(self, handle: int, layout: Layout) -> None:
        self._handle, self._layout = handle, layout
        memory = mmap.mmap(handle, 0)
        self.arrays = {
            name: numpy.ndarray(shape, dtype, buffer=memory, offset=offset)
            for name, shape, dtype, offset in layout
        }

    def __reduce__(self) -> Tuple[Any, ...]:
        context.assert_spawning(self)
        return _attach, (reduction.DupFd(self._handle), self._layout)


def _attach(handle: Any, layout: Layout) -> SharedArrays:
    shared = object.__new__(SharedArrays)
    own = handle.detach()
    weakref.finalize(shared, os.close, own)
    shared._take(own, layout)
    return shared
