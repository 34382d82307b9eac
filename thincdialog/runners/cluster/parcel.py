"""Messages as arguments of one call: Ray sends small ones with the call itself."""

import pickle
from typing import Any, Iterator, List, Sequence

# Ray puts arguments above 100,000 bytes, and what exceeds 10 MiB in a call, into its object
# store: that takes two nodes some ten milliseconds, which pays for large messages alone.
PART_BYTES, MOST_BYTES = 96_000, 8 << 20


def parcel(message: Any) -> List[Any]:
    """What to call ``opened`` with at the other end. The message may change afterwards.

    RETURNS (List[Any]): The message itself if it is large; else parts of it.
    """
    buffers: List[pickle.PickleBuffer] = []
    head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    if len(head) > PART_BYTES or sum(view.nbytes for view in views) > MOST_BYTES:
        return [message]
    return [head, [view.nbytes for view in views], *_parts(views)]


def _parts(views: Sequence[memoryview]) -> Iterator[bytes]:
    """What lies in several places, one after the other, copied once."""
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
    """The message of a parcel; arrays in it may not be changed."""
    if len(parts) == 1:
        return parts[0]
    head, sizes, *content = parts
    view, buffers, at = memoryview(b"".join(content)), [], 0
    for size in sizes:
        buffers.append(view[at : at + size])
        at += size
    return pickle.loads(head, buffers=buffers)
