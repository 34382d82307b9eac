"""Parts of a split that fit into memory: blocks of a stream, and shards of a store."""

from bisect import bisect_left
from itertools import accumulate
from typing import Any, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from .memory_store import MemoryStore
from .reading import Readers, Start, Tasks, reads
from .store import Store, collection_paused

# Maximum number of examples of a shard, and of characters of their texts. A shard may exceed them
# by one episode.
SHARD_ROWS, SHARD_LETTERS = 1 << 16, 1 << 25
# The episodes of a shard, and where to start reading the next one.
Shard = Tuple[MemoryStore, Start]


class Block(NamedTuple):
    """Hold episodes that are shown together.

    store (Store): Holds the episodes.
    order (np.ndarray): Numbers of the episodes in the store, in the order of the data or of an
        epoch; int64.
    number (int): Place of the block in the data, from 0.
    start (Optional[Start]): Where to start reading a stream to get the episodes again.
    again (int): Number of times that the whole data was already shown within the epoch.
    task (int): Number of the task in a mixture.
    """

    store: Store
    order: np.ndarray
    number: int
    start: Optional[Start] = None
    again: int = 0
    task: int = 0


def streamed_blocks(
    split: Any, readers: Optional[Readers], picked: Optional[np.ndarray], start: Start
) -> Iterator[Block]:
    """Read a stream in blocks of ``Split.block_size`` episodes (see ``Split.blocks``).

    readers (Optional[Readers]): Processes that read; None: only this process reads.
    """
    wanted = None if picked is None else picked.tolist()
    encoding = split.encoding() if split.encoding is not None and wanted is None else None
    window, part, skipped = split.block_size, start["part"], start["skip"]
    number = origin = start["episode"] - skipped
    store, place = MemoryStore(is_held=False), start
    tasks = Tasks(split, start, readers is None)
    for read in reads(tasks, readers, encoding):
        whole, first = read.store, min(skipped, read.store.n_episodes)
        skipped -= first
        for begin, end in _runs(wanted, number + first, number + whole.n_episodes):
            first, last = begin - number, end - number
            while first < last:
                if not store.n_episodes:
                    place = {**_behind(read, start, first, number, origin), "part": part}
                n = min(last - first, window - store.n_episodes)
                if n == whole.n_episodes and not store.n_episodes:
                    store = whole
                else:
                    store.extend(whole, first, first + n)
                first += n
                if store.n_episodes == window:
                    tasks.end_block()
                    yield split.block(store, part, place)
                    store, part = MemoryStore(is_held=False), part + 1
        number += whole.n_episodes
        if wanted is None:
            tasks.room = window - store.n_episodes
    if store.n_episodes:
        yield split.block(store, part, place)


def shards(split: Any, readers: Optional[Readers], start: Start) -> Iterator[Shard]:
    """Read a split in shards (see ``Split.shards``).

    readers (Optional[Readers]): Processes that read; None: only this process reads.
    """
    store, size = MemoryStore(is_held=False), 0
    skipped, place = start["skip"], start
    number = origin = start["episode"] - skipped
    tasks = Tasks(split, start, readers is None)
    for read in reads(tasks, readers, None):
        whole, first = read.store, min(skipped, read.store.n_episodes)
        skipped -= first
        sizes = map(n_letters, map(whole.message, range(whole.n_examples)))
        rows = np.asarray(whole.starts)
        letters = np.array([0, *accumulate(sizes)])[rows]
        while first < whole.n_episodes:
            n_letters_then = size + letters[first + 1 :] - letters[first]
            n_rows_then = store.n_examples + rows[first + 1 :] - rows[first]
            full = (n_letters_then > SHARD_LETTERS) | (n_rows_then >= SHARD_ROWS)
            last = first + 1 + int(full.argmax()) if full.any() else whole.n_episodes
            with collection_paused():
                store.extend(whole, first, last)
            size += int(letters[last] - letters[first])
            first, place = last, _behind(read, start, last, number, origin)
            if full.any():
                tasks.end_block()
                split.complete(store)
                yield store, place
                store, size = MemoryStore(is_held=False), 0
        number += whole.n_episodes
    if store.n_episodes:
        split.complete(store)
        yield store, place


def _behind(read: Any, start: Start, n: int, number: int, origin: int) -> Start:
    """Return where to start reading to continue after some episodes of a task's result.

    read (Read): Result of the task.
    n (int): Number of its episodes to skip.
    number, origin (int): Number of its first episode, and of the first episode that can be read
        from ``start``.
    """
    since = read.n_before + n if read.mark else number - origin + n
    return {**(read.mark or start), "skip": since, "episode": number + n, "part": 0}


def _runs(wanted: Optional[List[int]], first: int, last: int) -> List[Tuple[int, int]]:
    """Return the wanted numbers from ``first`` to before ``last``, as runs.

    wanted (Optional[List[int]]): Wanted numbers, ascending; None for all.
    """
    if wanted is None:
        return [(first, last)]
    own = wanted[bisect_left(wanted, first) : bisect_left(wanted, last)]
    return [(number, number + 1) for number in own]


def n_letters(message: Mapping[str, Any]) -> int:
    """Count the characters of a message's texts, labels and earlier turns. Lists of candidates,
    which many messages may share, do not count."""
    size = sum(len(value) for value in message.values() if type(value) is str)
    size += sum(map(len, message.get("labels") or ()))
    return size + sum(len(turn[1]) for turn in message.get("context") or ())
