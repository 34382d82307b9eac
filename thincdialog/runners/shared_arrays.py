"""Arrays in memory that any processes on the same machine can share."""

import mmap
import os
import tempfile
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import numpy

from ..errors import DialogError
from ..ops.alignment import aligned_zeros

# Each array begins on a page of its own, so an array that is never used takes no memory.
ALIGNMENT = 4096

# Name, shape and dtype of each array.
Layout = List[Tuple[str, Tuple[int, ...], str]]
Arrays = Dict[str, Any]


class SharedMemory(NamedTuple):
    """Describe shared memory, so that another process can open it.

    path (str): Path of the file to open.
    layout (Layout): Name, shape and dtype of each array.
    """

    path: str
    layout: Layout


@contextmanager
def shared_arrays(
    layout: Layout, remedy: str = "set TMPDIR to another folder"
) -> Iterator[Tuple[SharedMemory, Arrays]]:
    """Allocate named arrays, which other processes can open while this context is open. They are
    zero at first, and only pages that are written to take memory, until the last array is deleted.

    The memory has no file name (``memfd_create``); other processes open it through this process's
    folder in /proc. So it is freed no matter how the processes end, and it does not count towards
    the limit of /dev/shm, which is small in containers. Systems without ``memfd_create`` use a
    temporary file, which is deleted at the end of the context.

    layout (Layout): Name, shape and dtype of each array.
    remedy (str): Advice for the user, for the error if there is too little memory.
    YIELDS (Tuple[SharedMemory, Arrays]): A description for ``open_arrays``, and the arrays by name.
    RAISES (DialogError): If there is too little memory, or a limit of the system is exceeded.
    """
    size, path, handle = _size_of(layout), "", -1
    try:
        try:
            if hasattr(os, "memfd_create"):
                handle = os.memfd_create("thincdialog")
            else:
                handle, path = tempfile.mkstemp(prefix="thincdialog-")
            os.ftruncate(handle, size)
            arrays = _views_of(mmap.mmap(handle, size), layout)
        except OSError as error:
            raise DialogError(
                f"{size:,} bytes of memory cannot be shared with workers: {error.strerror}. Raise "
                f"the limit (ulimit -a shows all), or {remedy}."
            ) from None
        yield SharedMemory(path or f"/proc/{os.getpid()}/fd/{handle}", layout), arrays
    finally:
        if handle >= 0:
            os.close(handle)
        if path:
            os.unlink(path)


def open_arrays(memory: SharedMemory) -> Arrays:
    """Return the arrays of another process's ``shared_arrays`` by name.

    RAISES (OSError): If this process cannot open the memory.
    """
    handle, size = os.open(memory.path, os.O_RDWR), _size_of(memory.layout)
    try:
        if os.fstat(handle).st_size != size:
            raise FileNotFoundError(memory.path)
        return _views_of(mmap.mmap(handle, size), memory.layout)
    finally:
        os.close(handle)


def private_arrays(layout: Layout) -> Arrays:
    """Return arrays by name in memory that only this process uses."""
    return _views_of(aligned_zeros(_size_of(layout) // 4), layout)


def _views_of(memory: Any, layout: Layout) -> Arrays:
    arrays, offset = {}, 0
    for name, shape, dtype in layout:
        arrays[name] = numpy.ndarray(shape, dtype, buffer=memory, offset=offset)
        offset += _size_of([(name, shape, dtype)])
    return arrays


def _size_of(layout: Layout) -> int:
    sizes = (
        int(numpy.prod(shape, dtype="q")) * numpy.dtype(kind).itemsize for _, shape, kind in layout
    )
    return sum(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)
