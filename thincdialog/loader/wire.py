"""How tasks and what comes of them travel: arrays as raw bytes, small messages through a pipe,
large ones through memory without a name."""

import os
import pickle
import struct
import tempfile
from multiprocessing.connection import Connection
from typing import Any, List, NamedTuple, Sequence

# Up to here a pipe is as fast; it holds as much before anybody reads.
MAX_IN_PIPE = 1 << 15
# Arrays begin at lines of the cache.
ALIGNMENT = 64
# The system reads and writes no more at once.
MAX_AT_ONCE = 1 << 30
# Task, slot, arrays, bytes of the frame, and bytes of all of it if it lies in the slot, else 0.
_HEAD = struct.Struct("<5q")


class Received(NamedTuple):
    """A message.

    task (int): Number of the task that it is, or answers; below 0 if none.
    slot (int): Number of the memory that belongs to the task.
    value (Any): What was sent.
    """

    task: int
    slot: int
    value: Any


def new_slot() -> int:
    """A handle of memory that grows as it is written. It has no name: nothing is left of it when
    the last process that has it is gone, and it counts for no limit of /dev/shm."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("thincdialog")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def send(pipe: Connection, slots: Sequence[int], slot: int, task: int, value: Any) -> None:
    """Send a value whose arrays go as they are; only what is around them is pickled.

    slots (Sequence[int]): Handles of memory that the other side has, too.
    slot (int): Number of one that nobody uses now.
    RAISES (OSError): If the other side is gone, or there is no memory left.
    """
    arrays: List[pickle.PickleBuffer] = []
    frame = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    raws = [array.raw() for array in arrays]
    parts: List[Any] = [struct.pack(f"<{len(raws)}q", *(raw.nbytes for raw in raws)), frame]
    size = sum(map(len, parts))
    for raw in raws:
        gap = -size % ALIGNMENT
        parts += [b"\0" * gap, raw]
        size += gap + raw.nbytes
    is_small = size <= MAX_IN_PIPE
    head = _HEAD.pack(task, slot, len(raws), len(frame), 0 if is_small else size)
    if not is_small:
        place = 0
        for part in parts:
            place += _write(slots[slot], memoryview(part), place)
        parts = []
    pipe.send_bytes(b"".join([head, *parts]))


def _write(handle: int, part: memoryview, place: int) -> int:
    written = 0
    while written < len(part):
        rest = part[written : written + MAX_AT_ONCE]
        written += os.pwrite(handle, rest, place + written)
    return written


def receive(pipe: Connection, slots: Sequence[int]) -> Received:
    """Take in a message; its arrays are views of one piece of memory of its own.

    slots (Sequence[int]): As in ``send``.
    RAISES (EOFError): If the other side is gone.
    """
    message = bytearray(pipe.recv_bytes())
    task, slot, n_arrays, n_frame, size = _HEAD.unpack_from(message)
    content = memoryview(bytearray(size) if size else message[_HEAD.size :])
    place = 0
    while place < size:
        part = content[place : place + MAX_AT_ONCE]
        n_read = os.preadv(slots[slot], [part], place)
        if not n_read:
            raise EOFError
        place += n_read
    sizes = struct.unpack_from(f"<{n_arrays}q", content)
    place = 8 * n_arrays
    frame = content[place : place + n_frame]
    place += n_frame
    views = []
    for each in sizes:
        place += -place % ALIGNMENT
        views.append(content[place : place + each])
        place += each
    return Received(task, slot, pickle.loads(frame, buffers=views))
