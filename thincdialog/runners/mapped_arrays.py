"""Arrays in memory that any processes on the same machine can share."""

import mmap
import os
import tempfile
import weakref
from multiprocessing import context, reduction
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy

from ..errors import DialogError

# Each array begins on a page of its own, so an array that is never used takes no memory.
ALIGNMENT = 4096

# Name, shape and dtype of each array.
Layout = List[Tuple[str, Tuple[int, ...], str]]


class MappedMemory(NamedTuple):
    """Describe shared memory, so that another process can open it.

    path (str): Path of the file to open.
    size (int): Size in bytes.
    mark (bytes): Random bytes at the start of the memory, with which ``open`` recognises it.
    layout (Layout): Name, shape and dtype of each array.
    """

    path: str
    size: int
    mark: bytes
    layout: Layout


class MappedArrays:
    """Hold named arrays in shared memory. They are zero at first, and only pages that are written
    to take memory.

    The memory has no file name (``memfd_create``). A process gets it if this object is one of the
    arguments with which it starts; others open it through this process's folder in /proc. Therefore
    it is freed no matter how the processes end, and it does not count towards the limit of
    /dev/shm, which is small in containers. Where this does not work, set ``is_named``: then the
    memory is a temporary file, which ``forget`` deletes when all processes have opened it.

    layout (Layout): Name, shape and dtype of each array.
    is_named (bool): Whether to use a temporary file.
    remedy (str): Advice for the user, for the error if there is too little memory.
    arrays (Dict[str, numpy.ndarray]): The arrays by name.
    RAISES (DialogError): If there is too little memory, or a limit of the system is exceeded.
    """

    def __init__(
        self,
        layout: Layout,
        is_named: bool = not hasattr(os, "memfd_create"),
        remedy: str = "set TMPDIR to another folder",
    ):
        size = ALIGNMENT + sum(_size(shape, dtype) for _, shape, dtype in layout)
        self._path = ""
        try:
            if is_named:
                handle, self._path = tempfile.mkstemp(prefix="thincdialog-")
            else:
                handle = os.memfd_create("thincdialog")
            self._handle, self._close_handle = handle, weakref.finalize(self, os.close, handle)
            os.ftruncate(handle, size)
            path = self._path or f"/proc/{os.getpid()}/fd/{handle}"
            self.mapping = MappedMemory(path, size, os.urandom(32), layout)
            self._take(handle)
        except OSError as error:
            self.forget()
            raise DialogError(
                f"{size:,} bytes of memory cannot be shared with workers: {error.strerror}. Raise "
                f"the limit (ulimit -a shows all), or {remedy}."
            ) from None
        self._memory[: len(self.mapping.mark)] = self.mapping.mark

    def _take(self, handle: int) -> None:
        self._memory = mmap.mmap(handle, self.mapping.size)
        self.arrays: Dict[str, Any] = {}
        offset = ALIGNMENT
        for name, shape, dtype in self.mapping.layout:
            buffer: Any = self._memory
            self.arrays[name] = numpy.ndarray(shape, dtype, buffer=buffer, offset=offset)
            offset += _size(shape, dtype)

    @classmethod
    def open(cls, mapping: MappedMemory) -> "MappedArrays":
        """Open the arrays of another process.

        mapping (MappedMemory): The attribute ``mapping`` of the other process's object.
        RAISES (OSError): If this process cannot open the memory.
        """
        return cls._of_handle(os.open(mapping.path, os.O_RDWR), mapping)

    @classmethod
    def _of_handle(cls, handle: int, mapping: MappedMemory) -> "MappedArrays":
        """Map the memory of an open file, and close the file."""
        opened = object.__new__(cls)
        opened.mapping = mapping
        try:
            if os.fstat(handle).st_size != mapping.size:
                raise FileNotFoundError(mapping.path)
            opened._take(handle)
        finally:
            os.close(handle)
        if opened._memory[: len(mapping.mark)] != mapping.mark:
            raise FileNotFoundError(mapping.path)
        return opened

    def __reduce__(self) -> Tuple[Any, ...]:
        context.assert_spawning(self)
        return _attach, (reduction.DupFd(self._handle), self.mapping)

    def forget(self) -> None:
        """Delete the temporary file, if any; call this when all processes have opened it."""
        if self._path:
            os.unlink(self._path)
            self._path = ""

    def close(self) -> None:
        """Close the memory to further processes. It is freed when its last array is deleted."""
        self.forget()
        self._close_handle()


def _attach(duplicate: Any, mapping: MappedMemory) -> MappedArrays:
    return MappedArrays._of_handle(duplicate.detach(), mapping)


def _size(shape: Tuple[int, ...], dtype: str) -> int:
    size = int(numpy.prod(shape, dtype="q")) * numpy.dtype(dtype).itemsize
    return -(-size // ALIGNMENT) * ALIGNMENT
