"""Blocks of a split: parts that fit into memory."""

from bisect import bisect_left
from typing import Any, Generator, List, NamedTuple, Optional, Tuple

import numpy as np

from .encoded import Encoding
from .memory_store import MemoryStore
from .reading import Readers, Start, Tasks, reads
from .store import Store


class Block(NamedTuple):
    """Hold episodes that are shown together.

    store (Store): Holds the episodes.
    order (np.ndarray): Numbers of the episodes in the store, in the order of the data or of an
        epoch; int64.
    number (int): Place of the block in the data, from 0.
    start, end (Optional[Start]): Where to start reading a stream to get the episodes again, and
        to get the episodes after them.
    again (int): Number of times that the whole data was already shown within the epoch.
    task (int): Number of the task in a mixture.
    """

    store: Store
    order: np.ndarray
    number: int
    start: Optional[Start] = None
    end: Optional[Start] = None
    again: int = 0
    task: int = 0


def streamed_blocks(
    split: Any,
    readers: Optional[Readers],
    picked: Optional[np.ndarray],
    start: Start,
    size: int,
    encoding: Optional[Encoding] = None,
) -> Generator[Block, None, None]:
    """Read a stream in blocks (see ``Split.blocks``).

    readers (Optional[Readers]): Processes that read; None: only this process reads.
    size (int): Number of episodes of a block.
    encoding (Optional[Encoding]): Makes tokens; None to make none.
    """
    wanted = None if picked is None else picked.tolist()
    part, skipped = start["part"], start["skip"]
    n_read = origin = start["episode"] - skipped

    def after(n: int) -> Start:
        """Return where to start reading to get the episodes after n ones of the last task."""
        since = read.n_before + n if read.mark else number - origin + n
        return {**(read.mark or start), "skip": since, "episode": number + n, "part": part}

    store = MemoryStore(is_held=False)
    tasks = Tasks(split, start, readers is None)
    tasks.room = size
    for read in reads(tasks, readers, encoding):
        whole, number = read.store, n_read
        n_read += whole.n_episodes
        first = min(skipped, whole.n_episodes)
        skipped -= first
        for begin, end in _runs(wanted, number + first, n_read):
            first, last = begin - number, end - number
            while first < last:
                if not store.n_episodes:
                    place = after(first)
                n = min(last - first, size - store.n_episodes)
                if n == whole.n_episodes and not store.n_episodes:
                    store = whole
                else:
                    store.extend(whole, first, first + n)
                first += n
                if store.n_episodes == size:
                    tasks.end_block()
                    part += 1
                    yield split.block(store, place, after(first))
                    store = MemoryStore(is_held=False)
        if wanted is None:
            tasks.room = size - store.n_episodes
    if store.n_episodes:
        yield split.block(store, place, after(whole.n_episodes))


def _runs(wanted: Optional[List[int]], first: int, last: int) -> List[Tuple[int, int]]:
    """Return the wanted numbers from ``first`` to before ``last``, as runs.

    wanted (Optional[List[int]]): Wanted numbers, ascending; None for all.
    """
    if wanted is None:
        return [(first, last)]
    own = wanted[bisect_left(wanted, first) : bisect_left(wanted, last)]
    return [(number, number + 1) for number in own]
