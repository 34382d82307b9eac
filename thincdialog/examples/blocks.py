"""Blocks of a split: parts that fit into memory."""

from typing import Any, Generator, NamedTuple, Optional

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
        own = np.arange(number + first, n_read)
        if picked is not None:
            own = picked[slice(*picked.searchsorted((number + first, n_read)))]
        while len(own):
            n = min(len(own), size - store.n_episodes)
            taken, own = own[:n] - number, own[n:]
            if not store.n_episodes:
                place = after(int(taken[0]))
            if n == whole.n_episodes and not store.n_episodes:
                store = whole
            else:
                store.extend(whole, taken)
            if store.n_episodes == size:
                tasks.end_block()
                part += 1
                yield split.block(store, place, after(int(taken[-1]) + 1))
                store = MemoryStore(is_held=False)
        if picked is None:
            tasks.room = size - store.n_episodes
    if store.n_episodes:
        yield split.block(store, place, after(whole.n_episodes))
