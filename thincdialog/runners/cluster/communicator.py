"""NCCL, as CuPy has it, among workers of which each has a GPU of its own."""

import os
import threading
import time
from contextlib import contextmanager
from typing import Any, Iterator, List, Tuple

import numpy

from ...errors import DialogError
from .lone_plane import Aborted

# Send and recv are there since 2.7.
LEAST_VERSION = 2700
# Another thread waits so long for calls of NCCL that come back by themselves; and so long for
# those that were aborted.
CALL_SECONDS, ABORT_SECONDS = 1.0, 20.0
# CuPy's for what NCCL and CUDA say; of an error that it does not know it has no text.
_ERRORS = (RuntimeError, KeyError)


def why_no_nccl() -> str:
    """Why workers cannot exchange through NCCL here; nothing if they can."""
    try:
        from cupy.cuda import nccl
    except ImportError:
        return "CuPy is not installed"
    if not nccl.available:
        return "CuPy finds no NCCL"
    version = nccl.get_build_version()
    return f"CuPy has an old NCCL ({version})" if version < LEAST_VERSION else ""


def unique_id() -> Tuple[int, ...]:
    """By which workers find each other, once. The process that asked for it is the first."""
    from cupy.cuda import nccl

    return nccl.get_unique_id()


class Communicator:
    """Sends arrays of a device to others, in the order of the current stream. Whoever waits for
    what comes of it calls ``get``. Another thread may end it all (``abandon``)."""

    def __init__(self) -> None:
        self._comm: Any = None
        self._lock, self._aborting = threading.Lock(), threading.Lock()
        self.n_workers, self.is_abandoned, self._is_waiting = 0, False, False

    def connect(self, n_workers: int, name: Tuple[int, ...], worker: int) -> None:
        """Wait until all are there.

        name (Tuple[int, ...]): From ``unique_id``.
        RAISES (DialogError): If NCCL refuses, as two workers on one GPU.
        RAISES (Aborted): If it was abandoned.
        """
        from cupy.cuda import nccl

        self._nccl, self.n_workers = nccl, n_workers
        self._kinds = {
            "f": nccl.NCCL_FLOAT32,
            "d": nccl.NCCL_FLOAT64,
            numpy.dtype("i8").char: nccl.NCCL_INT64,
        }
        with self._waiting():
            # Whoever abandons it after this sees that it waits.
            if self.is_abandoned:
                raise Aborted
            try:
                self._comm = nccl.NcclCommunicator(n_workers, name, worker)
            except _ERRORS as error:
                if self.is_abandoned:
                    raise
                raise DialogError(
                    f"NCCL does not connect worker {worker} ({error}; NCCL_DEBUG=WARN tells more). "
                    'Set [runner] plane = "shm" or "store".'
                ) from None
            if self.is_abandoned:
                self._abort()
                raise Aborted

    @contextmanager
    def group(self) -> Iterator[None]:
        """A stretch whose calls are carried out together.

        RAISES (Aborted): If it was abandoned.
        """
        with self._lock:
            if self.is_abandoned:
                raise Aborted
            with self._waiting():
                self._nccl.groupStart()
                try:
                    yield
                finally:
                    self._nccl.groupEnd()

    def send(self, array: Any, worker: int) -> None:
        """Within a ``group``."""
        self._comm.send(*self._cells(array), worker, _stream())

    def recv(self, array: Any, worker: int) -> None:
        """Within a ``group``: into an array, as large as what that worker sends."""
        self._comm.recv(*self._cells(array), worker, _stream())

    def broadcast(self, array: Any, root: int) -> None:
        """Within a ``group``: the array of one worker takes the place of all others'."""
        pointer, *rest = self._cells(array)
        self._comm.broadcast(pointer, pointer, *rest, root, _stream())

    def gather(self, xp: Any, numbers: List[int]) -> Any:
        """As many numbers of each worker, known to the host; int64, a row for each."""
        own = xp.asarray(numpy.array(numbers, dtype="i8"))
        found = xp.empty((self.n_workers, len(numbers)), dtype="i8")
        with self.group():
            pointer, *rest = self._cells(own)
            self._comm.allGather(pointer, found.data.ptr, *rest, _stream())
        return self.get(found)

    def add_up(self, array: Any) -> None:
        """Add those of all workers, in place; each cell is zero in all but one."""
        with self.group():
            pointer, *rest = self._cells(array)
            self._comm.allReduce(pointer, pointer, *rest, self._nccl.NCCL_SUM, _stream())

    def get(self, array: Any) -> Any:
        """A copy on the host, of what others have sent.

        RAISES (Aborted): If it was abandoned.
        """
        with self._waiting():
            found = array.get()
        if self.is_abandoned:
            raise Aborted
        return found

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        self._is_waiting = True
        try:
            yield
        except _ERRORS:
            if self.is_abandoned:
                raise Aborted from None
            raise
        finally:
            self._is_waiting = False

    def _cells(self, array: Any) -> Tuple[int, int, int]:
        return array.data.ptr, array.size, self._kinds[array.dtype.char]

    def abandon(self) -> None:
        """Others are gone: whoever waits for them is let go. A process that NCCL does not let go
        ends, as one that waits for others to connect."""
        self.is_abandoned = True
        # A call that comes back is not to find what it works with gone.
        has_lock = self._lock.acquire(timeout=CALL_SECONDS)
        self._abort()
        if has_lock:
            self._lock.release()
        until = time.monotonic() + ABORT_SECONDS
        while self._is_waiting:
            if time.monotonic() > until:
                os._exit(1)
            time.sleep(0.05)

    def _abort(self) -> None:
        with self._aborting:
            if self._comm is not None:
                self._comm.abort()


def _stream() -> int:
    import cupy

    return cupy.cuda.get_current_stream().ptr
