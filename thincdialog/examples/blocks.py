"""Parts of a split that are read at once, and where in a stream each begins."""

from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from ..formats.bookmark import Bookmark
from .memory_store import MemoryStore
from .store import Store

# Where in a stream a part begins, as JSON values: the bookmark's ``mark``, how many episodes
# the mutators make of what stands between it and the part (`skip`), the `episode`'s number
# and the `part`'s.
Start = Dict[str, Any]
BEGIN: Start = {"skip": 0, "episode": 0, "part": 0}
# Examples, and letters of their texts, that a shard has at most (and one episode more).
SHARD_ROWS, SHARD_LETTERS = 1 << 16, 1 << 25
# Its episodes, and where to begin for what follows them.
Shard = Tuple[MemoryStore, Start]


class Block(NamedTuple):
    """Some episodes that are shown together.

    store (Store): Holds the episodes.
    order (np.ndarray): Their numbers in the store, in the order of the data, or in that of an
        epoch; int64.
    number (int): Place of the block in the data, from 0.
    start (Optional[Start]): Where a stream is to be read from to get them again.
    again (int): How often the data was shown whole before, within the epoch.
    task (int): Number of the task, in a mixture.
    """

    store: Store
    order: np.ndarray
    number: int
    start: Optional[Start] = None
    again: int = 0
    task: int = 0


def behind(mark: Bookmark, n_before: int, number: int, part: int = 0) -> Start:
    """Where to begin behind an episode, from what reading tells of it."""
    return {**mark.mark(), "skip": n_before + 1, "episode": number + 1, "part": part}


def n_letters(message: Mapping[str, Any]) -> int:
    """Letters of a message's texts, labels and turns said before; lists of candidates, which many
    may share, do not count."""
    size = sum(len(value) for value in message.values() if type(value) is str)
    size += sum(map(len, message.get("labels") or ()))
    return size + sum(len(turn[1]) for turn in message.get("context") or ())
