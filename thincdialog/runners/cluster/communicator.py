"""Communication through NCCL (by CuPy) between workers that each have a GPU."""

import os
import threading
import time
from contextlib import contextmanager
from typing import Any, Iterator, List, Tuple

import numpy

from ...errors import DialogError
from .lone_plane import Aborted

# NCCL 2.7, the first version with send and recv.
LEAST_VERSION = 2700
# How long ``abandon`` waits for calls of NCCL: before it aborts them, and after.
CALL_SECONDS, ABORT_SECONDS = 1.0, 20.0
# CuPy's exceptions for errors of NCCL and CUDA; a KeyError is an error that CuPy has no text for.
_ERRORS = (RuntimeError, KeyError)


def why_no_nccl() -> str:
    """Return why this process cannot use NCCL; "" if it can."""
    try:
        from cupy.cuda import nccl
    except ImportError:
        return "CuPy is not installed"
    if not nccl.available:
        return "CuPy finds no NCCL"
    version = nccl.get_build_version()
    return f"CuPy has an old NCCL ({version})" if version < LEAST_VERSION else ""


def unique_id() -> Tuple[int, ...]:
    """Return an id with which all workers connect once; call this in worker 0's process."""
    from cupy.cuda import nccl

    return nccl.get_unique_id()


class Communicator:
    """Exchange arrays on GPUs with other workers, in the order of the current stream. Call ``get``
    to wait for a result. Another thread may end the exchange (``abandon``)."""

    def __init__(self) -> None:
        self._comm: Any = None
        self._lock, self._aborting = threading.Lock(), threading.Lock()
        self.n_workers, self.is_abandoned, self._is_waiting = 0, False, False

    def connect(self, n_workers: int, name: Tuple[int, ...], worker: int) -> None:
        """Connect with the other workers, waiting until all of them call this.

        n_workers (int): Number of workers.
        name (Tuple[int, ...]): Id from ``unique_id``.
        worker (int): Number of this worker, from 0.
        RAISES (DialogError): If NCCL fails, for example because two workers have the same GPU.
        RAISES (Aborted): If the exchange was abandoned.
        """
        from cupy.cuda import nccl

        self._nccl, self.n_workers = nccl, n_workers
        self._kinds = {
            "f": nccl.NCCL_FLOAT32,
            "d": nccl.NCCL_FLOAT64,
            numpy.dtype("i8").char: nccl.NCCL_INT64,
        }
        with self._waiting():
            # If ``abandon`` is called after this check, it sees that this thread is waiting.
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
        """Execute the calls within this context together.

        RAISES (Aborted): If the exchange was abandoned.
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
        """Send an array to a worker. Call this within a ``group``."""
        self._comm.send(*self._cells(array), worker, _stream())

    def recv(self, array: Any, worker: int) -> None:
        """Receive a worker's array into an array of the same size. Call this within a ``group``."""
        self._comm.recv(*self._cells(array), worker, _stream())

    def broadcast(self, array: Any, root: int) -> None:
        """Copy worker ``root``'s array to all workers' arrays. Call this within a ``group``."""
        pointer, *rest = self._cells(array)
        self._comm.broadcast(pointer, pointer, *rest, root, _stream())

    def gather(self, xp: Any, numbers: List[int]) -> Any:
        """Return the numbers of all workers.

        numbers (List[int]): This worker's numbers, as many as any other worker has.
        RETURNS (Array2d): int64, on the host, shape (n_workers, len(numbers)).
        """
        own = xp.asarray(numpy.array(numbers, dtype="i8"))
        found = xp.empty((self.n_workers, len(numbers)), dtype="i8")
        with self.group():
            pointer, *rest = self._cells(own)
            self._comm.allGather(pointer, found.data.ptr, *rest, _stream())
        return self.get(found)

    def add_up(self, array: Any) -> None:
        """Sum the arrays of all workers, in place. Each cell must be zero in all but one worker."""
        with self.group():
            pointer, *rest = self._cells(array)
            self._comm.allReduce(pointer, pointer, *rest, self._nccl.NCCL_SUM, _stream())

    def get(self, array: Any) -> Any:
        """Copy an array that depends on other workers to the host.

        RAISES (Aborted): If the exchange was abandoned.
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
        """End the exchange, because other workers are gone. A thread that is waiting for them gets
        ``Aborted``. If NCCL does not release the thread, for example while it is waiting for
        others to connect, this ends the process."""
        self.is_abandoned = True
        # Give a call of NCCL time to return by itself, before the communicator is aborted.
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
