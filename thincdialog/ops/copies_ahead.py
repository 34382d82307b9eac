"""Copies to a device beside its work: from pinned memory, on a stream of their own."""

import weakref
from typing import Any, List, NamedTuple, Tuple

import numpy

# Bytes that room is made for at least.
_LEAST = 1 << 16


class Room(NamedTuple):
    """Where something is written that is to be copied.

    host (np.ndarray): Bytes of pinned memory.
    slot (Any): What it belongs to.
    """

    host: numpy.ndarray
    slot: "_Slot"


class CopiesAhead:
    """What one thread copies to a device while another one lets it compute. Neither waits for the
    device, but for what was copied into the same room three copies before.

    xp (module): CuPy.
    """

    def __init__(self, xp: Any):
        self._xp = xp
        self._stream: Any = None
        # As many as are in use at once; of a step, of the next one, and of the one before.
        self._slots: List[_Slot] = []

    def let_go(self) -> None:
        """Called where the device is let compute, while the other thread rests: what nobody has
        any more may be written over, once the device has done what it was asked for so far."""
        for slot in self._slots:
            if slot.is_taken and slot.array() is None:
                slot.is_taken = False
                slot.read.record(self._xp.cuda.get_current_stream())

    def room(self, n_bytes: int) -> Room:
        """Room for so many bytes: the other thread's, as is all that follows."""
        if self._stream is None:
            self._stream = self._xp.cuda.Stream(non_blocking=True)
        slot = next((each for each in self._slots if not each.is_taken), None)
        if slot is None:
            slot = _Slot(self._xp)
            self._slots.append(slot)
        slot.hold(n_bytes, self._stream)
        return Room(slot.host[:n_bytes], slot)

    def send(self, room: Room) -> Tuple[Any, Any]:
        """Copy what was written.

        RETURNS (Tuple[Any, Any]): The bytes on the device, and the event that a stream has to
            wait for which reads them.
        """
        slot, n_bytes = room.slot, len(room.host)
        # Those who read what lay here before.
        self._stream.wait_event(slot.read)
        array = self._xp.ndarray((n_bytes,), dtype="u1", memptr=slot.memory.data)
        slot.array, slot.is_taken = weakref.ref(array), True
        array.set(room.host, stream=self._stream)
        slot.copied.record(self._stream)
        return array, slot.copied


class _Slot:
    """Room for one copy, on the host and on the device.

    array (Callable): Gives what lies there; None if nobody has it any more.
    copied, read (Event): It was copied there; and all was asked for that reads it.
    """

    array: Any
    memory: Any
    host: numpy.ndarray

    def __init__(self, xp: Any):
        self._xp, self._n_bytes, self.is_taken = xp, 0, False
        self.copied, self.read = (xp.cuda.Event(disable_timing=True) for _ in range(2))

    def hold(self, n_bytes: int, stream: Any) -> None:
        """See that there is room for so many bytes, and that none of them is copied still."""
        if not self.copied.done:
            self.copied.synchronize()
        if n_bytes <= self._n_bytes:
            return
        n_bytes = max(_LEAST, 2 * n_bytes)
        # What lay there before goes back to what this stream alone takes from.
        stream.wait_event(self.read)
        with stream:
            self.memory = self._xp.empty((n_bytes,), dtype="u1")
        self.host = numpy.frombuffer(self._xp.cuda.alloc_pinned_memory(n_bytes), "u1", n_bytes)
        self._n_bytes = n_bytes
