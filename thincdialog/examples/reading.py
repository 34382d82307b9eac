"""Read a split in tasks, which this process or other processes carry out."""

import time
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import (
    Any,
    Callable,
    Dict,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    NamedTuple,
    Optional,
    Protocol,
    Tuple,
    Union,
)

from ..errors import DataError
from ..formats.context import BadData, Bookmark, Tolerance, tolerance, tolerating
from ..formats.text_file import cut_lines
from ..messages import Episode
from .encoded import Encoding
from .memory_store import MemoryStore
from .mutating import Source
from .sharded import Sharded
from .store import collection_paused

# Target duration of a task: much longer than the time to hand it out, and short enough that the
# wait for the last task does not matter.
SECONDS = 0.05
# Maximum size of a task of lines in bytes, and of any other task in episodes.
MOST_BYTES, MOST_EPISODES = 1 << 19, 4096
# Size of the first task of lines.
FIRST_BYTES = 1 << 12
# End of a range whose end is not known: larger than any number of episodes.
NO_END = 1 << 62
# Where a part of a stream begins, as JSON values: the bookmark's ``mark``; the number of episodes
# to `skip` after it (counted after the mutators); the number of the `episode`; and the number of
# the `part`.
Start = Dict[str, Any]
BEGIN: Start = {"skip": 0, "episode": 0, "part": 0}


class Lines(NamedTuple):
    """Hold consecutive lines of a file. Each line is one episode, or one episode for each side of
    a conversation. An object without lines marks the end of the file.

    mark (Dict[str, Any]): Where the lines begin (see ``Bookmark.mark``).
    text (str): The lines.
    """

    mark: Dict[str, Any]
    text: str

    @property
    def size(self) -> int:
        """Size in characters."""
        return len(self.text)


class Range(NamedTuple):
    """Hold a range of episode numbers, counted from the start of reading; for a ``Sharded``
    source, a range of its units."""

    first: int
    last: int

    @property
    def size(self) -> int:
        """Size in episodes or units."""
        return self.last - self.first


Task = Union[Lines, Range]


class Read(NamedTuple):
    """Hold the result of a task.

    store (MemoryStore): The mutated episodes, without the fields that all examples share, and with
        tokens if an encoding was given.
    mark (Optional[Dict[str, Any]]): Where to start reading to get the first episode again; None
        if only the start of all reading is known.
    n_before (int): Number of episodes between ``mark`` and the first episode.
    is_last (bool): Whether no more episodes follow.
    size (int): Size of the task.
    seconds (float): Duration of the task.
    bad (Dict[str, BadData]): For each file, the bad data found so far; for ``Lines``, the bad data
        in these lines.
    """

    store: MemoryStore
    mark: Optional[Dict[str, Any]]
    n_before: int
    is_last: bool
    size: int
    seconds: float
    bad: Dict[str, BadData]


def needs_all(split: Any) -> bool:
    """Return whether a mutator must see the whole split, so that one process must read it."""
    return any(hasattr(mutator, "rewrite") for mutator in split.mutators)


def are_apart(split: Any) -> bool:
    """Return whether each part of a split can be read without the parts before it."""
    is_cut = getattr(split.source, "is_by_line", False) or isinstance(split.source, Sharded)
    return is_cut and not needs_all(split)


class Tasks:
    """Cut a split into tasks, from a given start on: for a single process, one task per block;
    otherwise, tasks that take about ``SECONDS`` each.

    split (Split): The split to read.
    start (Mapping): Where to begin (see ``Split.blocks``).
    is_alone (bool): Whether only this process carries out the tasks.
    are_apart (bool): Whether each task can be carried out without reading the tasks before it.
    has_help (bool): Whether other processes also carry out tasks.
    room (int): Maximum number of episodes of a task without such help: the number that the block
        still lacks; ``NO_END`` if not known.
    n_ahead (int): Number of tasks to carry out in advance: the tasks of the last block or, if
        more, those of the current block so far.
    """

    def __init__(self, split: Any, start: Mapping[str, Any], is_alone: bool = False):
        self.split, self.start = split, start
        self.room, self.has_help, self.is_alone = NO_END, False, is_alone
        self._is_over = False
        self.n_ahead = self._n_of_block = 0
        self.are_apart = are_apart(split) and not is_alone
        self._by_number = self.are_apart and isinstance(split.source, Sharded)
        self._by_line = self.are_apart and not self._by_number
        self._size = float(FIRST_BYTES if self._by_line else 1)
        # Position of the lines whose result comes next, with the counts of bad data up to there.
        self._at = Bookmark(start)

    def note(self, read: Read) -> Read:
        """Use the result of a task to choose the size of further tasks, and count bad data.

        RETURNS (Read): The result; for ``Lines``, its mark now has the counts before these lines.
        RAISES (DataError): If a file has ended without any example.
        """
        if self._by_line:
            read = self._add_lines(read)
        else:
            getattr(self.split.source, "bad", {}).update(read.bad)
        self._is_over |= read.is_last
        self._n_of_block += 1
        self.n_ahead = max(self.n_ahead, self._n_of_block)
        # After a very fast task, the next one is up to 16 times as large.
        wanted = read.size * SECONDS / max(read.seconds, SECONDS / 16)
        most = MOST_BYTES if self._by_line else MOST_EPISODES
        self._size = min(most, max(1.0, wanted, 0.25 * self._size))
        return read

    def end_block(self) -> None:
        """Record that a block or a shard is complete."""
        self.n_ahead, self._n_of_block = self._n_of_block, 0

    def _add_lines(self, read: Read) -> Read:
        """Add the counts of a task of lines to those of its file, and put the counts before these
        lines into the mark."""
        at, source = self._at, self.split.source
        mark: Dict[str, Any] = read.mark or {}
        at.open(mark["file"])
        counts = at.counts
        mark = {**mark, "counts": counts.numbers()}
        for path, part in read.bad.items():
            counts.path, counts.unit = path, part.unit
            counts.n_read += part.n_read
            counts.n_without += part.n_without
            counts.note = counts.note or part.note
            source.compare(part)
        if not read.size:
            if counts.n_without == counts.n_read:  # The source itself raises the error.
                next(source.read_from(Bookmark({"file": at.file})), None)
            source.bad[counts.path] = counts
        return read._replace(mark=mark)

    def __iter__(self) -> Iterator[Task]:
        if self._by_line:
            source = self.split.source
            at = Bookmark(self.start)
            at.encoding = source.options.encoding
            at.counts = BadData("")  # Each piece has its own counts.
            for mark, text in cut_lines(source.paths, at, lambda: int(self._size)):
                yield Lines(mark, text)
            return
        source = self.split.source
        first, end = (self.start.get("line", 0), source.size) if self._by_number else (0, NO_END)
        while first < end and not self._is_over:
            # Parts are handed out one by one, because their sizes are not known.
            size = 1 if self._by_number and source.has_parts else int(self._size)
            if self.is_alone:
                size = self.room
            elif not self.has_help:
                size = min(size, self.room)
            last = min(end, first + size)
            yield Range(first, last)
            first = last

    def reading(self, encoding: Optional[Encoding]) -> "Reading":
        """Return the ``Reading`` that carries out these tasks."""
        return Reading(self.split.bare(), dict(self.start), encoding, tolerance())


@dataclass
class Reading:
    """Make a function that carries out tasks. Can be sent to another process.

    split (Split): The split, without its data.
    start (Dict[str, Any]): Where reading began.
    encoding (Optional[Encoding]): Makes tokens; None to make none.
    tolerance (Tolerance): Errors in the data to tolerate.
    is_alone (bool): Whether no other process carries out tasks of the same reading.
    """

    split: Any
    start: Dict[str, Any]
    encoding: Optional[Encoding]
    tolerance: Tolerance
    is_alone: bool = False

    def __call__(self) -> Callable[[Task], Read]:
        # Readers in one process each iterate over their own copy of the source.
        return Reader(replace(self, split=self.split.bare())).read


class Reader:
    """Carry out tasks in ascending order."""

    def __init__(self, reading: Reading):
        self.reading, self.split = reading, reading.split
        # Whether the iteration is over mutated episodes, or over episodes of the source.
        self.is_serial = reading.is_alone or needs_all(reading.split)
        self._walk: Optional[Iterator[Episode]] = None
        # Where the last of these episodes begins, if known; the ``_n_before`` episodes before it
        # begin there, too.
        self._at: Optional[Bookmark] = None
        self._n_walked = self._n_before = 0

    def read(self, task: Task) -> Read:
        """Carry out a task, with the tolerance for errors of the reading."""
        with tolerating(**vars(self.reading.tolerance)):
            return self._read(task)

    def _read(self, task: Task) -> Read:
        started = time.perf_counter()
        split, mark, n_before, is_last = self.split, None, 0, False
        bad: Dict[str, BadData] = {}
        store = MemoryStore(is_held=False)
        read: Source = lambda: split.source_episodes(at)  # noqa: E731
        with collection_paused():
            if isinstance(task, Lines):
                mark = task.mark
                at = Bookmark(mark)
                at.piece = task.text
            elif isinstance(split.source, Sharded) and not self.is_serial:
                mark = {"line": task.first}
                at = Bookmark(mark)
                at.last = task.last
            else:
                found, mark, n_before = self._range(task)
                read = lambda: found  # noqa: E731
            store.append_all(read() if self.is_serial else split.after_mutators(read))
            if isinstance(task, Lines):
                bad = {at.counts.path: at.counts}
            elif self._walk is not None and self._n_walked < task.last:
                is_last, bad = True, getattr(split.source, "bad", {})
            if self.reading.encoding is not None:
                store.tokenize(self.reading.encoding)
        return Read(store, mark, n_before, is_last, task.size, time.perf_counter() - started, bad)

    def _range(self, task: Range) -> Tuple[Iterable[Episode], Optional[Dict[str, Any]], int]:
        """Return an iterator over the episodes of a range, so that they need not be in memory at
        once; and the mark and the number of episodes before the range, as in ``Read``."""
        if self._walk is None:
            self._walk = self._walked()
        for _ in islice(self._walk, task.first - self._n_walked):
            pass
        first, mark = list(islice(self._walk, 1)), None
        n_before = self._n_before
        # Otherwise, the number of mutated episodes between the mark and the first episode is not
        # known.
        if self._at is not None and (self.is_serial or not n_before):
            mark = self._at.mark()
        return chain(first, islice(self._walk, task.size - 1)), mark, n_before

    def _walked(self) -> Iterator[Episode]:
        """Yield the episodes one after the other."""
        split, spot = self.split, None
        is_placed = hasattr(split.source, "read_from") and not needs_all(split)
        self._at = at = Bookmark(self.reading.start) if is_placed else None
        read = lambda: split.source_episodes(at)  # noqa: E731
        for episode in split.after_mutators(read) if self.is_serial else read():
            before, spot = spot, at and (at.file, at.spot)
            self._n_before = self._n_before + 1 if spot == before else 0
            self._n_walked += 1
            yield episode


class Readers(Protocol):
    """Read in this process, or also in other processes (see ``loader.Readers``)."""

    def read(self, tasks: Tasks, reading: Reading) -> Generator[Read, None, None]:
        """Yield the results of the tasks, in their order."""


def reads(tasks: Tasks, readers: Optional[Readers], encoding: Optional[Encoding]) -> Iterator[Read]:
    """Carry out all tasks of a split, and yield the results that have episodes.

    readers (Optional[Readers]): Processes that read; if None, only this process reads.
    encoding (Optional[Encoding]): Makes tokens; None to make none.
    RAISES (DataError): If the split is read from its beginning and has no examples.
    """
    split, is_empty = tasks.split, tasks.start == BEGIN
    if readers is not None:
        found = readers.read(tasks, tasks.reading(encoding))
    else:
        read = Reader(Reading(split, dict(tasks.start), encoding, tolerance(), True)).read
        found = (read(task) for task in tasks)
    try:
        for each in found:
            each = tasks.note(each)
            if each.store.n_episodes:
                is_empty = False
                yield each
    except DataError:
        if is_empty and readers is not None:  # Read it whole to raise the complete error.
            next(split.episodes(), None)
        raise
    finally:
        found.close()
    if is_empty:
        next(split.episodes(), None)
