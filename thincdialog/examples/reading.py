"""How a split is read: it is cut into tasks, which this process carries out, or others do."""

import time
from dataclasses import dataclass, replace
from itertools import islice
from typing import (
    Any,
    Callable,
    Dict,
    Generator,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Protocol,
    Tuple,
    Union,
)

import numpy as np

from ..errors import DataError
from ..formats.bad_data import BadData
from ..formats.bookmark import Bookmark
from ..formats.text_file import cut_lines
from ..formats.tolerance import Tolerance, tolerance, tolerating
from ..messages import Episode
from .encoded import Encoding
from .memory_store import MemoryStore
from .sharded import Sharded
from .store import collection_paused

# A task shall take so long: much longer than it takes to hand it out, and short enough that
# nobody waits for the last one.
SECONDS = 0.05
# A task is no larger than this, in bytes and in episodes; the first one is this small.
MOST_BYTES, MOST_EPISODES = 1 << 19, 4096
FIRST_BYTES = 1 << 12
# Behind any end that is not known.
NO_END = 1 << 62
# Where in a stream a part begins, as JSON values: the bookmark's ``mark``, how many episodes
# the mutators make of what stands between it and the part (`skip`), the `episode`'s number
# and the `part`'s.
Start = Dict[str, Any]
BEGIN: Start = {"skip": 0, "episode": 0, "part": 0}


class Lines(NamedTuple):
    """Some lines of a file, each an episode, or one for each side of a conversation; none at the
    end of the file.

    mark (Dict[str, Any]): Where they begin (see ``Bookmark.mark``).
    letters (np.ndarray): All of them, uint8.
    encoding (str): Theirs.
    """

    mark: Dict[str, Any]
    letters: np.ndarray
    encoding: str

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.letters)


class Range(NamedTuple):
    """Some episodes by their numbers, counted from where reading began; of a source that is
    ``Sharded``, some of its units."""

    first: int
    last: int

    @property
    def size(self) -> int:
        """In episodes, or units."""
        return self.last - self.first


Task = Union[Lines, Range]


class Read(NamedTuple):
    """What came of a task.

    store (MemoryStore): The episodes, behind the mutators, without the fields that all have in
        common; with tokens, if they were to be made.
    mark (Optional[Dict[str, Any]]): Where the first of them can be read again; None: only where
        reading began.
    n_before (int): Episodes that are read there before it.
    is_last (bool): Whether there is nothing behind them.
    size (int): Of the task.
    seconds (float): It took.
    bad (Dict[str, BadData]): By file, what was left out, where that is known by now; of lines,
        what was left out of them.
    """

    store: MemoryStore
    mark: Optional[Dict[str, Any]]
    n_before: int
    is_last: bool
    size: int
    seconds: float
    bad: Dict[str, BadData]


def needs_all(split: Any) -> bool:
    """Whether a mutator of a split has to see all of it, so that one has to read it."""
    return any(hasattr(mutator, "rewrite") for mutator in split.mutators)


def are_apart(split: Any) -> bool:
    """Whether some of a split can be read without what stands before it."""
    is_cut = getattr(split.source, "is_by_line", False) or isinstance(split.source, Sharded)
    return is_cut and not needs_all(split)


class Tasks:
    """The tasks that a split is cut into, from one of its places on; they are as large as takes
    ``SECONDS``.

    split (Split): What is read.
    start (Mapping): Where to begin (see ``Split.blocks``).
    is_alone (bool): Whether this process carries them out.
    are_apart (bool): Whether a task needs nothing of what stands before it.
    has_help (bool): Whether others carry them out, too.
    room (int): The most episodes of a task while nobody does: as many as the block still lacks.
    n_ahead (int): How many to carry out ahead of time: as many as a block takes, the last one or
        the one that is read.
    """

    def __init__(self, split: Any, start: Mapping[str, Any], is_alone: bool = False):
        self.split, self.start = split, start
        self.room, self.has_help = NO_END, False
        self._is_over = False
        self.n_ahead = self._n_of_block = 0
        self.are_apart = are_apart(split) and not is_alone
        self._by_number = self.are_apart and isinstance(split.source, Sharded)
        self._by_line = self.are_apart and not self._by_number
        self._size = float(FIRST_BYTES if self._by_line else 1)
        # Lies before the next lines that come back, with what was counted up to there.
        self._at = Bookmark(start)

    def note(self, read: Read) -> Read:
        """Learn from what came of a task, and count what was left out.

        RETURNS (Read): The same; the mark of lines has what was counted before them.
        RAISES (DataError): If a file has come to its end and gives no example.
        """
        if self._by_line:
            read = self._add_lines(read)
        else:
            getattr(self.split.source, "bad", {}).update(read.bad)
        self._is_over |= read.is_last
        self._n_of_block += 1
        self.n_ahead = max(self.n_ahead, self._n_of_block)
        # What is gone in no time is much larger next time.
        wanted = read.size * SECONDS / max(read.seconds, SECONDS / 16)
        most = MOST_BYTES if self._by_line else MOST_EPISODES
        self._size = min(most, max(1.0, wanted, 0.25 * self._size))
        return read

    def end_block(self) -> None:
        """Learn that a block, or a shard, is whole."""
        self.n_ahead, self._n_of_block = self._n_of_block, 0

    def _add_lines(self, read: Read) -> Read:
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
            if counts.n_without == counts.n_read:  # What its reader says then is said here.
                next(source.read_from(Bookmark({"file": at.file})), None)
            source.bad[counts.path] = counts
        return read._replace(mark=mark)

    def __iter__(self) -> Iterator[Task]:
        if self._by_line:
            source = self.split.source
            at = Bookmark(self.start)
            at.encoding = source.options.encoding
            at.counts = BadData("")  # Each piece is counted by itself.
            for mark, letters, encoding in cut_lines(source.paths, at, lambda: int(self._size)):
                yield Lines(mark, np.frombuffer(letters, dtype=np.uint8), encoding)
            return
        source = self.split.source
        first, end = (self.start.get("byte", 0), source.size) if self._by_number else (0, NO_END)
        while first < end and not self._is_over:
            # Parts come one by one: nobody knows how large they are.
            size = 1 if self._by_number and source.has_parts else int(self._size)
            last = min(end, first + (size if self.has_help else min(size, self.room)))
            yield Range(first, last)
            first = last

    def reading(self, encoding: Optional[Encoding]) -> "Reading":
        """What carries them out."""
        return Reading(self.split.bare(), dict(self.start), encoding, tolerance())


@dataclass
class Reading:
    """What someone needs who carries out tasks; called, it gives a function that does.

    split (Split): Without what it holds.
    start (Dict[str, Any]): Where reading began.
    encoding (Optional[Encoding]): Makes tokens, too.
    tolerance (Tolerance): What is no error.
    is_alone (bool): Whether nobody else carries out tasks of the same reading.
    """

    split: Any
    start: Dict[str, Any]
    encoding: Optional[Encoding]
    tolerance: Tolerance
    is_alone: bool = False

    def __call__(self) -> Callable[[Task], Read]:
        # In one process, everyone walks through the source for himself.
        return Reader(replace(self, split=self.split.bare())).read


class Reader:
    """Carries out tasks that come in rising order."""

    def __init__(self, reading: Reading):
        self.reading, self.split = reading, reading.split
        # Then what is walked through is behind the mutators.
        self.is_serial = reading.is_alone or needs_all(reading.split)
        self._walk: Optional[Iterator[Episode]] = None
        # Lies where the last one of them begins, if that is known; and so many before it do.
        self._at: Optional[Bookmark] = None
        self._n_walked = self._n_before = 0

    def read(self, task: Task) -> Read:
        """Carry out a task."""
        with tolerating(**self.reading.tolerance._asdict()):
            return self._read(task)

    def _read(self, task: Task) -> Read:
        started = time.perf_counter()
        split, mark, n_before, is_last = self.split, None, 0, False
        bad: Dict[str, BadData] = {}
        store, in_common = MemoryStore(is_held=False), split.in_common()
        with collection_paused():
            if isinstance(task, Lines):
                mark = task.mark
                at = Bookmark(mark)
                at.piece = task.letters.tobytes(), task.encoding
                episodes = split.behind_mutators(lambda: split.source_episodes(at))
            elif isinstance(split.source, Sharded) and not self.is_serial:
                mark = {"byte": task.first, "line": task.first}
                at = Bookmark(mark)
                at.last = task.last
                episodes = split.behind_mutators(lambda: split.source_episodes(at))
            else:
                read, mark, n_before, is_last = self._range(task)
                episodes = iter(read)
                if not self.is_serial:
                    episodes = split.behind_mutators(lambda: iter(read))
            for episode in episodes:
                for message in episode if in_common else ():
                    for name in in_common:
                        del message[name]
                store.append(episode)
            if isinstance(task, Lines):
                bad = {at.counts.path: at.counts}
            elif is_last:
                bad = getattr(split.source, "bad", {})
            if self.reading.encoding is not None:
                store.tokenize(self.reading.encoding)
        return Read(store, mark, n_before, is_last, task.size, time.perf_counter() - started, bad)

    def _range(self, task: Range) -> Tuple[List[Episode], Optional[Dict[str, Any]], int, bool]:
        if self._walk is None:
            self._walk = self._walked()
        for _ in islice(self._walk, task.first - self._n_walked):
            pass
        episodes, mark = list(islice(self._walk, 1)), None
        n_before = self._n_before
        # What mutators make of those before it is not known.
        if self._at is not None and (self.is_serial or not n_before):
            mark = self._at.mark()
        episodes += islice(self._walk, task.size - 1)
        self._n_walked = task.first + len(episodes)
        return episodes, mark, n_before, len(episodes) < task.size

    def _walked(self) -> Iterator[Episode]:
        """The episodes one after the other."""
        split, spot = self.split, None
        self._at = at = Bookmark(self.reading.start) if split.can_begin_anywhere else None
        read = lambda: split.source_episodes(at)  # noqa: E731
        for episode in split.behind_mutators(read) if self.is_serial else read():
            before, spot = spot, at and (at.file, at.spot)
            self._n_before = self._n_before + 1 if spot == before else 0
            yield episode


class Readers(Protocol):
    """Who reads: this process, or others as well (see ``loader.Readers``)."""

    def read(self, tasks: Tasks, reading: Reading) -> Generator[Read, None, None]:
        """What comes of the tasks, in their order."""


def reads(tasks: Tasks, readers: Optional[Readers], encoding: Optional[Encoding]) -> Iterator[Read]:
    """Read a split from a place on.

    readers (Optional[Readers]): Who reads; None: this process alone.
    encoding (Optional[Encoding]): Makes tokens, too, where others may help.
    RAISES (DataError): If it is read from the beginning, and nothing comes.
    """
    split, is_empty = tasks.split, tasks.start == BEGIN
    split.fixed_candidates()
    if readers is not None:
        found = readers.read(tasks, tasks.reading(encoding))
    else:
        read = Reader(Reading(split, dict(tasks.start), None, tolerance(), True)).read
        found = (read(task) for task in tasks)
    try:
        for each in found:
            each = tasks.note(each)
            if each.store.n_episodes:
                is_empty = False
                yield each
    except DataError:
        if is_empty and readers is not None:  # What reading all of it says then is said here.
            next(split.episodes(), None)
        raise
    finally:
        found.close()
    if is_empty:
        next(split.episodes(), None)
