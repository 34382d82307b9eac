"""Arrays in memory that processes map which have nothing in common but the machine."""

import mmap
import os
import tempfile
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy

from ...errors import DialogError

# Arrays begin at pages: of those that nobody touches, there are none.
ALIGNMENT = 4096

# Name, shape and dtype of each array.
Layout = List[Tuple[str, Tuple[int, ...], str]]


class Mapping(NamedTuple):
    """Where another process finds the memory.

    path (str): To be opened.
    size (int): In bytes.
    mark (bytes): What it begins with, so that nobody takes something else for it.
    layout (Layout): What is in it.
    """

    path: str
    size: int
    mark: bytes
    layout: Layout


class MappedArrays:
    """Named arrays, zero at first, which take up what is written to.

    The memory has no name (``memfd_create``), and others open it through this process's
    /proc: nothing is left of it however processes end, and it counts for no limit of
    /dev/shm, which is small in containers. Where that does not work (``is_named``), it is a
    file, to be forgotten (``forget``) when all have opened it.

    arrays (Dict[str, numpy.ndarray]): By name.
    RAISES (DialogError): If there is not so much memory.
    """

    def __init__(self, layout: Layout, is_named: bool = not hasattr(os, "memfd_create")):
        size = ALIGNMENT + sum(_size(shape, dtype) for _, shape, dtype in layout)
        self._path, self._handle = "", -1
        try:
            if is_named:
                self._handle, self._path = tempfile.mkstemp(prefix="thincdialog-")
            else:
                self._handle = os.memfd_create("thincdialog")
            handle = self._handle
            os.ftruncate(handle, size)
            path = self._path or f"/proc/{os.getpid()}/fd/{handle}"
            self.mapping = Mapping(path, size, os.urandom(32), layout)
            self._take(handle)
        except OSError as error:
            self.close()
            raise DialogError(
                f"{size:,} bytes of memory cannot be shared with workers: {error.strerror}. Raise "
                "the limit (ulimit -a shows all), or set TMPDIR to another folder."
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
    def open(cls, mapping: Mapping) -> "MappedArrays":
        """Those of another process.

        RAISES (OSError): If they cannot be opened from here.
        """
        opened = object.__new__(cls)
        opened.mapping, opened._path, opened._handle = mapping, "", -1
        handle = os.open(mapping.path, os.O_RDWR)
        try:
            if os.fstat(handle).st_size != mapping.size:
                raise FileNotFoundError(mapping.path)
            opened._take(handle)
        finally:
            os.close(handle)
        if opened._memory[: len(mapping.mark)] != mapping.mark:
            raise FileNotFoundError(mapping.path)
        return opened

    def forget(self) -> None:
        """All who need it have opened it: its file goes, if it has one."""
        if self._path:
            os.unlink(self._path)
            self._path = ""

    def close(self) -> None:
        """Nobody opens it any more. It goes when the last array of it is gone."""
        self.forget()
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _size(shape: Tuple[int, ...], dtype: str) -> int:
    size = int(numpy.prod(shape, dtype="q")) * numpy.dtype(dtype).itemsize
    return -(-size // ALIGNMENT) * ALIGNMENT
