"""Messages that are split into small arguments of a call, which Ray sends with the call itself."""

import pickle
from typing import Any, Iterator, List, Sequence

# Ray puts arguments of more than 100,000 bytes into its object store, and also the arguments of a
# call beyond 10 MiB. Between two nodes this takes some ten milliseconds, which is too long for
# small messages.
PART_BYTES, MOST_BYTES = 96_000, 8 << 20


def parcel(message: Any) -> List[Any]:
    """Split a message into arguments, which ``opened`` joins. The message may then be changed.

    message (Any): Picklable message.
    RETURNS (List[Any]): The parts; for a large message, only the message itself.
    """
    buffers: List[pickle.PickleBuffer] = []
    head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    if len(head) > PART_BYTES or sum(view.nbytes for view in views) > MOST_BYTES:
        return [message]
    return [head, [view.nbytes for view in views], *_parts(views)]


def _parts(views: Sequence[memoryview]) -> Iterator[bytes]:
    """Join views of memory, and split them into parts of PART_BYTES, with a single copy."""
    part: List[memoryview] = []
    room = PART_BYTES
    for view in views:
        while view.nbytes >= room:
            yield b"".join((*part, view[:room]))
            view, part, room = view[room:], [], PART_BYTES
        part.append(view)
        room -= view.nbytes
    yield b"".join(part)


def opened(parts: Sequence[Any]) -> Any:
    """Return the message of which ``parcel`` made these parts. Its arrays are read-only."""
    if len(parts) == 1:
        return parts[0]
    head, sizes, *content = parts
    view, buffers, at = memoryview(b"".join(content)), [], 0
    for size in sizes:
        buffers.append(view[at : at + size])
        at += size
    return pickle.loads(head, buffers=buffers)
