"""Reads tasks of a split, alone or with others, and says who did."""

import contextvars
import multiprocessing
import pickle
import threading
import time
from contextlib import suppress
from functools import partial
from multiprocessing.forkserver import set_forkserver_preload
from queue import Full, Queue
from typing import (
    Any,
    Callable,
    Dict,
    Generator,
    Iterable,
    Iterator,
    Literal,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

from ..errors import ConfigError, Problem
from ..examples.reading import Read, Reading, Tasks, are_apart, needs_all
from ..examples.split import Split
from .clocks import NO_TIME, Spent
from .cores import n_cores
from .hands import MakeWork, ProcessHands, ThreadHands
from .ordered import Hands, OrderedMap, waits_alone

StartMethod = Literal["fork", "forkserver", "spawn"]
T = TypeVar("T")
Workers = Union[int, Literal["auto"]]

# What is seen before it is said that a source waits; and of computing before workers are worth it,
# which then have cost no more than was lost without them.
LOOK_SECONDS, WORTH_SECONDS = 0.02, 0.2
# The share of time that a source waits from which on it does not count how much it computes.
WAITING_SHARE = 0.5
# "auto": threads where a source waits.
N_WAITING = 16
# What a fork server imports once, so that no worker does.
PRELOADED = [
    f"thincdialog.{name}"
    for name in ("loader.untold", "loader.hands", "teachers", "mutators", "data.tokenizers")
]
# How often a thread that reads ahead looks whether it is still wanted, and how long it is waited
# for if not.
LOOK_AGAIN_SECONDS, END_SECONDS = 0.1, 2.0


class Readers:
    """Who reads: this process, or workers beside it. The examples and their order are the same.

    workers (Workers): Processes that read; 0 for none; "auto" to see what is fastest.
    start_method (Optional[StartMethod]): How they are started; None for a server that forks them,
        or a fork where the reader cannot be sent to one.
    code (Sequence[str]): Python files that they import first.
    note (Callable[[str], None]): Told in a line what the user should know.
    """

    def __init__(
        self,
        workers: Workers,
        start_method: Optional[StartMethod] = None,
        code: Sequence[str] = (),
        note: Callable[[str], None] = lambda line: None,
    ):
        self.workers, self.start_method, self.code, self.note = workers, start_method, code, note
        # By what is read: threads, and processes, that help.
        self._chosen: Dict[Tuple[str, str], Tuple[int, int]] = {}
        # Passes that others help with now.
        self._n_helped = 0
        set_forkserver_preload(PRELOADED)

    def read(self, tasks: Tasks, reading: Reading) -> Generator[Read, None, None]:
        """What comes of the tasks, in their order."""
        mapped = OrderedMap(iter(tasks), reading, tasks.are_apart)
        hands = self._hands(reading)
        try:
            if hands is not None:
                mapped.bring_in(hands)
                self._n_helped += 1
            yield from mapped
        finally:
            self._n_helped -= mapped.has_hands
            mapped.close()

    def _hands(self, reading: Reading) -> Optional[Hands]:
        """Who helps, if anybody."""
        n_threads, n_processes = self._chosen.get(_name(reading.split), (0, 0))
        if n_threads:
            return ThreadHands(reading, n_threads)
        what = f"reads '{reading.split.name}' of {reading.split.origin}"
        return self._processes(reading, n_processes, what) if n_processes else None

    def carry_out(
        self, tasks: Iterable[Any], make_work: MakeWork, what: str
    ) -> Generator[Any, None, None]:
        """What comes of tasks that compute, in their order; others help once it is seen that
        there is much to do.

        make_work (MakeWork): Gives what carries out a task, each time a new one.
        what (str): It does, in words.
        """
        n = self.workers if self.workers != "auto" else n_cores() if n_cores() > 1 else 0
        mapped = OrderedMap(iter(tasks), make_work)
        try:
            for made in mapped:
                if n and not mapped.has_hands and mapped.seconds > WORTH_SECONDS:
                    mapped.bring_in(self._processes(make_work, n, what))
                    if self.workers == "auto":
                        self.note(f"[loader] workers: {n} processes for what {what}: it computes")
                yield made
        finally:
            mapped.close()

    def watch(self, split: Split) -> Optional["Watch"]:
        """What sees whether reading is so slow that others should help; None if it is clear."""
        if not self.workers or _name(split) in self._chosen:
            return None
        return Watch(self, split)

    def choose(self, split: Split, spent: Spent) -> bool:
        """Look whether others should help from now on.

        spent (Spent): By who read the split so far.
        """
        found = choice(self.workers, split, spent)
        if not (found.n_threads or found.n_processes):
            return False
        self._chosen[_name(split)] = found.n_threads, found.n_processes
        best = choice("auto", split, spent)
        if self.workers == "auto":
            self.note(f"[loader] workers: {found.text}")
        elif best.n_threads > found.n_processes:
            self.note(f'[loader] workers = {self.workers}: "auto" would choose {best.text}')
        return True

    def _processes(self, make_work: MakeWork, n: int, what: str) -> Hands:
        if multiprocessing.current_process().daemon:
            # A worker that is a process may start none.
            return ThreadHands(make_work, n)
        method = self.start_method or "forkserver"
        if method != "fork":
            try:
                make_work = partial(_opened, tuple(self.code), pickle.dumps(make_work))
            except Exception as error:
                if self.start_method is not None:
                    raise _cannot_go(what, method, error) from None
                method = "fork"
        return ProcessHands(make_work, n, method, self.note)

    def ahead(self, blocks: Iterator[T]) -> Iterator[T]:
        """The same blocks, or shards; where others help to read, the next one is read while one
        is in use."""
        for block in blocks:
            if self._n_helped:
                yield from _ahead(block, blocks)
                return
            yield block


class Watch:
    """Looks on while one reads alone.

    readers (Readers): Knows who could help.
    """

    def __init__(self, readers: Readers, split: Split):
        self.readers, self.split = readers, split
        self._spent = NO_TIME
        self.begin()

    def begin(self) -> None:
        """Reading goes on, after something else."""
        self._begun = Spent.now()
        self._next = self._begun.wall + LOOK_SECONDS

    def wants_help(self) -> bool:
        """Whether others are to help from now on."""
        if time.perf_counter() < self._next:
            return False
        self._spent = self._spent.plus(Spent.now().since(self._begun))
        self.begin()
        return self.readers.choose(self.split, self._spent)


class Choice(NamedTuple):
    """Who helps to read.

    n_threads, n_processes (int): How many; both 0 if nobody does.
    text (str): The same in words, with the reason.
    """

    n_threads: int
    n_processes: int
    text: str


def choice(workers: Workers, split: Split, spent: Spent) -> Choice:
    """Who should help to read a split.

    workers (Workers): See ``Readers``.
    spent (Spent): By who reads it alone.
    """
    reading, is_serial = f"as reading the {split.name} data of {split.origin}", needs_all(split)
    if spent.wall < LOOK_SECONDS:
        return Choice(0, 0, f"none, {reading} takes less than {LOOK_SECONDS:g} seconds")
    share = spent.waiting / spent.wall
    is_waiting = share >= WAITING_SHARE
    if not is_waiting and spent.computing < WORTH_SECONDS:
        return Choice(0, 0, f"none, {reading} computes for less than {WORTH_SECONDS:g} seconds")
    if workers != "auto":
        n = 1 if is_serial else workers
        return Choice(0, n, f"{n} process{'es' * (n > 1)}, as the config says")
    does = f"waits {100 * share:.0f}" if is_waiting else f"computes {100 - 100 * share:.0f}"
    reason = f"{reading} {does} % of its time"
    if is_waiting and are_apart(split):
        return Choice(N_WAITING, 0, f"{N_WAITING} threads, {reason}")
    if is_waiting:
        # Each would wait for all that stands before its own.
        return Choice(1, 0, f"1 thread, {reason}, and no part can be read by itself")
    if n_cores() < 2:
        return Choice(0, 0, "none, as there is one processor")
    n = 1 if is_serial else n_cores()
    return Choice(0, n, f"{n} process{'es' if n > 1 else ''}, {reason}")


def _name(split: Split) -> Tuple[str, str]:
    return split.name, split.origin


def _opened(code: Sequence[str], content: bytes) -> Callable[[Any], Any]:
    """In a worker: what carries out tasks."""
    if code:
        from ..config.code import load_code

        load_code(code)
    return pickle.loads(content)()


def _cannot_go(what: str, method: str, error: Exception) -> ConfigError:
    text = f'[loader] start_method = "{method}", but what {what} '
    text += f"cannot be sent to a process: {error}"
    hint = "define it at the top of its file, or leave start_method out"
    return ConfigError([Problem("", " ".join(text.split()), hint)])


def _ahead(first: T, others: Iterator[T]) -> Iterator[T]:
    """Blocks that a thread reads, one ahead."""
    following: "Queue[Any]" = Queue(maxsize=1)
    is_over = threading.Event()

    def put(block: Optional[T], error: Optional[BaseException] = None) -> None:
        while not is_over.is_set():
            with suppress(Full):
                following.put((block, error), timeout=LOOK_AGAIN_SECONDS)
                return

    def read() -> None:
        waits_alone.set(True)
        try:
            for block in others:
                put(block)
                if is_over.is_set():
                    break
            put(None)
        except BaseException as error:
            put(None, error)
        finally:
            others.close()  # type: ignore[attr-defined]

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(read,), name="loader", daemon=True)
    thread.start()
    block: Optional[T] = first
    try:
        while block is not None:
            yield block
            block, error = following.get()
            if error is not None:
                raise error
    finally:
        is_over.set()
        # One that hangs keeps nobody from leaving. (It may be the thread itself that lets go.)
        if thread is not threading.current_thread():
            thread.join(END_SECONDS)
