"""Streams beside the null stream. What is copied on one is copied as late as it may be: when
somebody waits for it. Whoever reads or writes too early is told."""

import threading
import weakref
import zlib
from itertools import count

import numpy as np

from ._counts import Clock, uploaded, waited_only
from ._devices import current as current_device

_current = threading.local()
_lock = threading.RLock()
_ticks = count(1)
_pinned, _rooms = [], []


class CUDARuntimeError(RuntimeError):
    pass


def _wrong_device():
    return CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")


def _address(array):
    return array.__array_interface__["data"][0]


class _Room:
    """Memory of the device that a stream copies to, for as long as somebody has it."""

    def __init__(self, array, owner):
        self.owner = weakref.ref(owner)
        self.start = _address(array)
        self.stop = self.start + array.nbytes
        # Copies that nobody waited for; when it was read or written last.
        self.n_pending = self.touched = 0


def touch(array):
    """The null stream reads or writes an array."""
    if not _rooms:
        return
    start = _address(array)
    for room in list(_rooms):
        if room.owner() is not None and room.start <= start < room.stop:
            if room.n_pending:
                raise RuntimeError("an array is read, but nobody waited for its copy's event")
            room.touched = next(_ticks)


class Event:
    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self._device, self._stream, self._place = current_device(), None, 0
        self._at = 0  # Kernels that were started before.

    def record(self, stream=None):
        stream = stream or get_current_stream()
        stream.check()
        if self._device != current_device():
            raise _wrong_device()
        self._stream, self._at = stream, Clock.asked
        self._place = next(_ticks) if stream.is_null else stream.n_asked

    @property
    def done(self):
        self.happen()
        return not self._is_of_kernels or self._at <= Clock.over

    @property
    def _is_of_kernels(self):
        return self._stream is not None and self._stream.is_null

    def synchronize(self):
        self.happen()
        waited_only("Event.synchronize", self._at if self._is_of_kernels else Clock.over)

    def happen(self):
        if self._stream is not None:
            self._stream.run(self._place)


class Stream:
    ptr = 0

    def __init__(self, null=False, non_blocking=False, ptds=False):
        self.is_null = null or not non_blocking
        self._device, self._asked, self._n_done, self.n_asked = current_device(), [], 0, 0
        self._waited = 0  # For what the null stream was asked for till then.

    def check(self):
        """See that it is of the thread's device; the null stream is of each."""
        if not self.is_null and self._device != current_device():
            raise _wrong_device()

    def record(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event):
        self.check()
        if self.is_null:
            event.happen()
        elif event._stream is not None and event._stream.is_null:
            self._waited = max(self._waited, event._place)

    def copy(self, target, source, owner):
        """Ask for a copy from the host.

        owner (ndarray): Of the memory that it goes to.
        """
        self.check()
        start = _address(source)
        stop = start + source.nbytes
        if not any(first <= start and stop <= last for first, last in list(_pinned)):
            raise RuntimeError("the host waits for a copy of memory that is not pinned")
        with _lock:
            room = _Room(target, owner)
            _rooms[:] = [each for each in _rooms if each.owner() is not None]
            for each in list(_rooms):
                if each.start < room.stop and room.start < each.stop:
                    if each.touched > self._waited:
                        raise RuntimeError("memory is copied to that may still be read")
                    if (each.start, each.stop) == (room.start, room.stop):
                        room = each
                    elif not each.n_pending:
                        _rooms.remove(each)
            if room not in _rooms:
                _rooms.append(room)
            room.n_pending += 1
            self.n_asked += 1
            self._asked.append((room, target, source, zlib.crc32(source)))

    def run(self, place):
        """Copy all that was asked for up to a place."""
        with _lock:
            while self._n_done < place and self._asked:
                room, target, source, checksum = self._asked.pop(0)
                if zlib.crc32(source) != checksum:
                    raise RuntimeError("pinned memory was written to before it was copied")
                uploaded("set", source.nbytes)
                target[...] = source
                room.n_pending -= 1
                self._n_done += 1

    def synchronize(self):
        self.run(self.n_asked)
        waited_only("Stream.synchronize")

    def use(self):
        _current.stream = self
        return self

    def __enter__(self):
        self._before = get_current_stream()
        return self.use()

    def __exit__(self, *args):
        self._before.use()


def get_current_stream(device_id=-1):
    return getattr(_current, "stream", Stream.null)


def alloc_pinned_memory(n_bytes):
    memory = np.empty(n_bytes, dtype="u1")
    memory[:] = 0xAA
    span = _address(memory), _address(memory) + n_bytes
    _pinned.append(span)
    # Whoever gets this memory next got it from somebody else.
    weakref.finalize(memory, _pinned.remove, span)
    return memory


Stream.null = Stream(null=True)
