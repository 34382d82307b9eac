"""Reading of a split in this process or with workers, and the choice between them."""

import multiprocessing
import pickle
import threading
import weakref
from dataclasses import replace
from functools import partial
from multiprocessing.forkserver import set_forkserver_preload
from typing import (
    Any,
    Callable,
    Dict,
    Generator,
    Iterable,
    Literal,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from ..errors import ConfigError, Problem
from ..examples.reading import Read, Reader, Reading, Tasks, are_apart, needs_all
from ..examples.split import Split
from .cores import n_cores
from .ordered import Spent, ordered
from .pool import NO_WORKERS, Job, MakeWork, Pool
from .starting import check_script_is_guarded

StartMethod = Literal["fork", "forkserver", "spawn"]
Workers = Union[int, Literal["auto"]]

# Reading time after which to decide whether a source waits, and CPU time after which workers are
# worth starting: their start takes no longer than the time that was already spent without them.
LOOK_SECONDS, WORTH_SECONDS = 0.02, 0.2
# A source that waits for at least this share of its time gets workers, however little it computes.
WAITING_SHARE = 0.5
# Number of threads that "auto" chooses for a source that waits.
N_WAITING = 16
# Modules that a fork server imports once, so that workers do not have to.
PRELOADED = [
    f"thincdialog.{name}" for name in ("loader.readers", "teachers", "mutators", "data.tokenizers")
]


class Readers:
    """Read data in this process, or with workers, which give the same examples in the same order.

    workers (Workers): Number of processes that read; 0 to read in this process; "auto" to choose
        the fastest way.
    start_method (Optional[StartMethod]): How processes are started; None for "forkserver", or for
        "fork" if the reader cannot be pickled.
    code (Sequence[str]): Python files that processes import first.
    note (Callable[[str], None]): Function that shows the user one line of text.
    """

    def __init__(
        self,
        workers: Workers,
        start_method: Optional[StartMethod] = None,
        code: Sequence[str] = (),
        note: Callable[[str], None] = lambda line: None,
    ):
        self.workers, self.start_method, self.code, self.note = workers, start_method, code, note
        # Numbers of threads and of processes that help, by name and origin of the split.
        self._chosen: Dict[Tuple[str, str], Tuple[int, int]] = {}
        # Pools by number of workers and start method, each shared by all splits.
        self._pools: Dict[Tuple[int, Optional[str]], Pool] = {}
        self._starting = threading.Lock()
        weakref.finalize(self, _end, self._pools)
        set_forkserver_preload(PRELOADED)

    def close(self) -> None:
        """End all workers. They are started again when they are needed."""
        _end(self._pools)

    def read(self, tasks: Tasks, reading: Reading) -> Generator[Read, None, None]:
        """Yield the results of reading tasks, in the order of the tasks.

        tasks (Tasks): The tasks.
        reading (Reading): Describes how to read the split; sent to workers.
        """
        check_script_is_guarded("[loader] workers", NO_WORKERS)
        split = reading.split
        what = f"reads '{split.name}' of {split.origin}"

        def find_help(spent: Spent) -> Optional[Job]:
            if self.workers and _name(split) not in self._chosen:
                self.choose(split, spent)
            n_threads, n_processes = self._chosen.get(_name(split), (0, 0))
            tasks.has_help = n_threads + n_processes > 0
            if n_processes:
                return self._processes(reading, n_processes, what)
            return Job(self._pool(n_threads), reading) if n_threads else None

        n_ahead = lambda: tasks.n_ahead  # noqa: E731
        # Read the original source in this process, because a custom source may keep state.
        here = lambda: Reader(replace(reading, split=tasks.split)).read  # noqa: E731
        return ordered(iter(tasks), here, find_help, n_ahead, may_help=tasks.are_apart)

    def carry_out(
        self, tasks: Iterable[Any], make_work: MakeWork, what: str
    ) -> Generator[Any, None, None]:
        """Yield the results of tasks that compute, in the order of the tasks. Workers help once the
        tasks have taken WORTH_SECONDS.

        tasks (Iterable[Any]): The tasks.
        make_work (MakeWork): Function that makes a function that executes tasks, a new one at each
            call.
        what (str): The work of the tasks, for messages: a verb and its object.
        """
        n = self.workers if self.workers != "auto" else n_cores() if n_cores() > 1 else 0

        def find_help(spent: Spent) -> Optional[Job]:
            if not n or spent.wall < WORTH_SECONDS:
                return None
            if self.workers == "auto":
                self.note(f"[loader] workers: {n} processes, because work that {what} is CPU-bound")
            return self._processes(make_work, n, what)

        return ordered(iter(tasks), make_work, find_help)

    def choose(self, split: Split, spent: Spent) -> None:
        """Choose the workers that help to read a split from now on, and log the choice.

        split (Split): The split.
        spent (Spent): Time that this process spent while it read without workers.
        """
        found = choice(self.workers, split, spent)
        if not (found.n_threads or found.n_processes):
            return
        self._chosen[_name(split)] = found.n_threads, found.n_processes
        best = choice("auto", split, spent)
        if self.workers == "auto":
            self.note(f"[loader] workers: {found.text}")
        elif best.n_threads > found.n_processes:
            self.note(f'[loader] workers = {self.workers}: "auto" would choose {best.text}')

    def _pool(self, n: int, method: Optional[str] = None) -> Pool:
        with self._starting:
            if (n, method) not in self._pools:
                self._pools[n, method] = Pool(n, method)
            return self._pools[n, method]

    def _processes(self, make_work: MakeWork, n: int, what: str) -> Job:
        """Make a job for n processes. If ``make_work`` cannot be pickled, use forked processes."""
        if multiprocessing.current_process().daemon:
            # A worker process cannot start processes, so use threads.
            return Job(self._pool(n), make_work)
        method = self.start_method or "forkserver"
        try:
            sent = partial(_unpickled, tuple(self.code), pickle.dumps(make_work))
        except Exception as error:
            if self.start_method not in (None, "fork"):
                raise _not_sendable(what, method, error) from None
            return Job(Pool(n, "fork", make_work), make_work)
        return Job(self._pool(n, method), sent)


def _end(pools: Dict[Any, Pool]) -> None:
    for pool in pools.values():
        pool.end()
    pools.clear()


class Choice(NamedTuple):
    """Hold a choice of workers that help to read.

    n_threads, n_processes (int): Numbers of threads and of processes; both are 0 for no workers.
    text (str): The choice of "auto" and its reason in words; "" for no workers.
    """

    n_threads: int = 0
    n_processes: int = 0
    text: str = ""


def choice(workers: Workers, split: Split, spent: Spent) -> Choice:
    """Choose the workers that help to read a split.

    workers (Workers): See ``Readers``.
    split (Split): The split.
    spent (Spent): Time that this process spent while it read without workers.
    """
    if spent.wall < LOOK_SECONDS:
        return Choice()
    share = max(0.0, 1 - spent.computing / (spent.wall or 1))
    is_waiting = share >= WAITING_SHARE
    if not is_waiting and spent.computing < WORTH_SECONDS:
        return Choice()
    is_serial = needs_all(split)
    if workers != "auto":
        return Choice(0, 1 if is_serial else workers)
    does = f"waits {100 * share:.0f}" if is_waiting else f"computes {100 - 100 * share:.0f}"
    reason = f"as reading the {split.name} data of {split.origin} {does} % of its time"
    if is_waiting and are_apart(split):
        return Choice(N_WAITING, 0, f"{N_WAITING} threads, {reason}")
    if is_waiting:
        # With several threads, each would wait for all parts before its own part.
        return Choice(1, 0, f"1 thread, {reason}, and no part can be read separately")
    if n_cores() < 2:
        return Choice()
    n = 1 if is_serial else n_cores()
    return Choice(0, n, f"{n} process{'es' if n > 1 else ''}, {reason}")


def _name(split: Split) -> Tuple[str, str]:
    return split.name, split.origin


def _unpickled(code: Sequence[str], content: bytes) -> Callable[[Any], Any]:
    """Make the function that executes tasks, in a worker.

    code (Sequence[str]): Python files to import first.
    content (bytes): Pickled ``MakeWork``.
    """
    if code:
        from ..config.code import load_code

        load_code(code)
    return pickle.loads(content)()


def _not_sendable(what: str, method: str, error: Exception) -> ConfigError:
    text = f'[loader] start_method = "{method}", but the code that {what} '
    text += f"cannot be sent to a worker process: {error}"
    hint = "define it at the top of its file, or leave start_method out"
    return ConfigError([Problem("", " ".join(text.split()), hint)])
