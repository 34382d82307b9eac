"""How others help to read a split: the same blocks and shards that one process would read."""

from bisect import bisect_left
from itertools import accumulate
from typing import (
    Any,
    Generator,
    Iterator,
    List,
    Optional,
    Protocol,
    Tuple,
)

import numpy as np

from ..errors import DataError
from . import blocks
from .blocks import BEGIN, Block, Shard, Start, n_letters
from .encoded import Encoding
from .memory_store import MemoryStore
from .reading import Read, Reading, Tasks
from .store import collection_paused


class Readers(Protocol):
    """Others who read ahead (see ``loader.Readers``)."""

    def read(self, tasks: Tasks, reading: Reading) -> Generator[Read, None, None]:
        """What comes of the tasks, in their order."""

    def watch(self, split: Any) -> Optional["Watch"]:
        """What sees whether reading is so slow that others should help; None if they do."""


class Watch(Protocol):
    """Looks on while one reads alone (see ``loader.Readers``)."""

    def begin(self) -> None:
        """Reading goes on."""

    def wants_help(self) -> bool:
        """Whether others are to help from now on."""


class ReadAhead:
    """Reads a split from a place on, while others help.

    split (Split): Its episodes are read.
    readers (Readers): The others.
    """

    def __init__(self, split: Any, readers: Readers):
        self.split, self.readers = split, readers

    def watch(self) -> Optional[Watch]:
        """What sees whether they should; None if they do."""
        return self.readers.watch(self.split)

    def _read(self, tasks: Tasks, encoding: Optional[Encoding]) -> Iterator[Read]:
        """The episodes from a place on, which others may have read."""
        split = self.split
        split.fixed_candidates()
        is_empty = tasks.start == BEGIN
        reads = self.readers.read(tasks, tasks.reading(encoding))
        try:
            for read in reads:
                read = tasks.note(read)
                if read.store.n_episodes:
                    is_empty = False
                    yield read
        except DataError:
            if is_empty:  # Nothing could be read: what it says then is said here.
                next(split.episodes(), None)
            raise
        finally:
            reads.close()
        if is_empty:
            next(split.episodes(), None)

    def _filled(self, store: MemoryStore) -> MemoryStore:
        """The same with what all examples share."""
        for name, value in self.split.in_common().items():
            store.fill(name, value)
        return store

    def blocks(
        self,
        picked: Optional[np.ndarray],
        start: Start,
        store: Optional[MemoryStore] = None,
        place: Start = BEGIN,
    ) -> Iterator[Block]:
        """See ``Split.blocks``.

        store (Optional[MemoryStore]): Episodes before the start that belong to the first block.
        place (Start): Where these begin.
        """
        split = self.split
        wanted = None if picked is None else picked.tolist()
        encoding = split.encoding() if split.streaming and wanted is None else None
        window, part, skipped = split.episodes_at_once, start["part"], start["skip"]
        number = origin = start["episode"] - skipped
        store = store or MemoryStore(is_held=False)
        if encoding is not None:
            store.tokenize(encoding)
        tasks = Tasks(split, start)
        for read in self._read(tasks, encoding):
            whole, first = read.store, min(skipped, read.store.n_episodes)
            skipped -= first
            if split.must_be_single and (np.diff(whole.starts) > 1).any():
                row = whole.starts[int((np.diff(whole.starts) > 1).argmax())]
                raise split.more_turns(whole.message(row)["id"])
            for begin, end in _runs(wanted, number + first, number + whole.n_episodes):
                first, last = begin - number, end - number
                while first < last:
                    if not store.n_episodes:
                        since = first if read.mark else number - origin + first
                        own = {"skip": since, "episode": number + first, "part": part}
                        place = {**(read.mark or start), **own}
                    n = min(last - first, window - store.n_episodes)
                    store.extend(whole, first, first + n)
                    first += n
                    if store.n_episodes == window:
                        tasks.end_block()
                        yield split.block(self._filled(store), part, place)
                        store, part = MemoryStore(is_held=False), part + 1
            number += whole.n_episodes
        if store.n_episodes:
            yield split.block(self._filled(store), part, place)

    def shards(self, start: Start, store: MemoryStore, size: int) -> Iterator[Shard]:
        """See ``Split.shards``.

        store (MemoryStore): Episodes before the start that belong to the first shard.
        size (int): Letters in it.
        """
        skipped, behind = start["skip"], start
        number = origin = start["episode"] - skipped
        tasks = Tasks(self.split, start)
        for read in self._read(tasks, None):
            whole, first = read.store, min(skipped, read.store.n_episodes)
            skipped -= first
            sizes = map(n_letters, map(whole.message, range(whole.n_examples)))
            rows = np.asarray(whole.starts)
            letters = np.array([0, *accumulate(sizes)])[rows]
            while first < whole.n_episodes:
                n_letters_then = size + letters[first + 1 :] - letters[first]
                n_rows_then = store.n_examples + rows[first + 1 :] - rows[first]
                full = (n_letters_then > blocks.SHARD_LETTERS) | (n_rows_then >= blocks.SHARD_ROWS)
                last = first + 1 + int(full.argmax()) if full.any() else whole.n_episodes
                with collection_paused():
                    store.extend(whole, first, last)
                size += int(letters[last] - letters[first])
                since = last if read.mark else number - origin + last
                own = {"skip": since, "episode": number + last, "part": 0}
                first, behind = last, {**(read.mark or start), **own}
                if full.any():
                    tasks.end_block()
                    yield self._filled(store), behind
                    store, size = MemoryStore(is_held=False), 0
            number += whole.n_episodes
        if store.n_episodes:
            yield self._filled(store), behind


def _runs(wanted: Optional[List[int]], first: int, last: int) -> List[Tuple[int, int]]:
    """Of some numbers, those that are wanted (all if None), as runs.

    wanted (Optional[List[int]]): Ascending.
    """
    if wanted is None:
        return [(first, last)]
    own = wanted[bisect_left(wanted, first) : bisect_left(wanted, last)]
    return [(number, number + 1) for number in own]
