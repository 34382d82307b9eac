"""Who carries out tasks beside this process: threads or processes."""

import atexit
import contextvars
import multiprocessing
import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing import connection, reduction
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from ..errors import WorkerError
from .failure import Failure
from .starting import leave_signals_to_parent, starting_processes, use_own_folder
from .wire import new_slot, receive, send

# Gives what carries out tasks; called once by each worker.
MakeWork = Callable[[], Callable[..., Any]]
# Tasks that a worker has at once, so that it never waits for the next one.
AT_ONCE = 2
CANNOT_GO = (
    "what was read cannot go from a process to another: {}. Let the reader give other values, or "
    "set [loader] workers = 0"
)
# What a worker says in place of an answer.
READY = -1
# Workers read ahead: where processors are few, the steps go first.
NICENESS = 5
FEWER = "Set [loader] workers lower, or raise the limit (ulimit -a shows all)"


class Done(NamedTuple):
    """A task that was carried out.

    task (int): Its number.
    value (Any): What came of it, or a ``Failure``.
    worker (int): Who did it.
    """

    task: int
    value: Any
    worker: int


class ThreadHands:
    """Threads of this process.

    make_work (MakeWork): Gives each thread what it works with.
    n_workers (int): How many.
    """

    def __init__(self, make_work: MakeWork, n_workers: int):
        self.loads = [0] * n_workers
        self._done: "SimpleQueue[Done]" = SimpleQueue()
        self._asked: List[SimpleQueue] = [SimpleQueue() for _ in range(n_workers)]
        for number, asked in enumerate(self._asked):
            context = contextvars.copy_context()
            thread = threading.Thread(
                target=context.run,
                args=(self._run, number, asked, make_work),
                name=f"loader {number}",
                daemon=True,
            )
            try:
                thread.start()
            except RuntimeError as error:
                raise WorkerError(number, f"{error}. {FEWER}") from None

    @property
    def n_ready(self) -> int:
        """How many have begun."""
        return len(self.loads)

    @property
    def is_busy(self) -> bool:
        """Whether some task is under way."""
        return any(self.loads)

    @property
    def has_room(self) -> bool:
        """Whether one that has begun can take a task."""
        return min(self.loads) < AT_ONCE

    def _run(self, number: int, asked: SimpleQueue, make_work: MakeWork) -> None:
        work = None
        while (given := asked.get()) is not None:
            task, value = given
            try:
                work = work or make_work()
                made = work(value)
            except BaseException as error:
                made = Failure.of(error)
            self._done.put(Done(task, made, number))

    def give(self, task: int, value: Any) -> None:
        """Have a task carried out by who has least to do."""
        worker = self.loads.index(min(self.loads))
        self.loads[worker] += 1
        self._asked[worker].put((task, value))

    def wait(self, seconds: float) -> List[Done]:
        """What was done meanwhile.

        seconds (float): How long to wait for the first.
        """
        done: List[Done] = []
        with suppress(Empty):
            done.append(self._done.get(timeout=seconds) if seconds else self._done.get_nowait())
            while True:
                done.append(self._done.get_nowait())
        for each in done:
            self.loads[each.worker] -= 1
        return done

    def end(self) -> None:
        """Let them go, each when its task is done."""
        for asked in self._asked:
            asked.put(None)


class _Process:
    """A worker process, as its parent knows it.

    tasks (Dict[int, Tuple[int, Any]]): Of the tasks that it has: slot, and what it was given.
    """

    def __init__(self, number: int, make_work: MakeWork, start_method: str):
        self.number = number
        self.is_ready = False
        self.tasks: Dict[int, Tuple[int, Any]] = {}
        starting = multiprocessing.get_context(start_method)
        self.slots: Tuple[int, ...] = ()
        try:
            if start_method == "forkserver":
                use_own_folder()
            self.slots = tuple(new_slot() for _ in range(AT_ONCE))
            self.pipe, theirs = starting.Pipe()
            is_fork = start_method == "fork"
            slots = self.slots if is_fork else tuple(map(_Handle, self.slots))
            with theirs:
                self.process = starting.Process(  # type: ignore[attr-defined]
                    target=run_worker,
                    args=(theirs, slots, make_work, os.getpid()),
                    name=f"loader {number}",
                    daemon=True,
                )
                self.process.start()
        except OSError as error:
            self._close_slots()
            text = f"its process could not be started: {error.strerror or error}"
            raise WorkerError(number, f"{text}. {FEWER}") from None

    def give(self, task: int, value: Any) -> None:
        taken = {slot for slot, _ in self.tasks.values()}
        slot = next(number for number in range(AT_ONCE) if number not in taken)
        self.tasks[task] = slot, value
        with suppress(BrokenPipeError, ConnectionResetError):  # It has died: see ``wait``.
            send(self.pipe, self.slots, slot, task, value)

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join(5.0)
        self._close_slots()

    def _close_slots(self) -> None:
        for handle in self.slots:
            os.close(handle)
        self.slots = ()


class _Handle:
    """A handle on its way to a process that is started."""

    def __init__(self, handle: int):
        self.handle = handle

    def __reduce__(self) -> Tuple[Any, ...]:
        return _detached, (reduction.DupFd(self.handle),)


def _detached(handle: Any) -> int:
    return handle.detach()


class ProcessHands:
    """Processes that this one starts. One that dies is replaced, and what it had at hand is done
    again, once; the next death is an error.

    make_work (MakeWork): Gives each process what it works with; unless they fork, what can be
        pickled.
    n_workers (int): How many.
    start_method (str): "fork", "forkserver" or "spawn".
    note (Callable[[str], None]): Told in a line what the user should know.
    """

    def __init__(
        self,
        make_work: MakeWork,
        n_workers: int,
        start_method: str,
        note: Callable[[str], None],
    ):
        self._make_work, self._start_method, self._note = make_work, start_method, note
        self._workers: List[_Process] = []
        self._has_died = False
        # Held while processes are started and while all end: the program may end while a thread
        # of it puts one in the place of another.
        self._starting, self._is_over = threading.RLock(), False
        # At the end of the program, before multiprocessing waits for processes without limit.
        atexit.register(self.end)
        try:
            for number in range(n_workers):
                with self._starting:
                    self._workers.append(self._start(number))
        except BaseException:
            self.end()
            raise

    def _start(self, number: int) -> _Process:
        with starting_processes():
            return _Process(number, self._make_work, self._start_method)

    @property
    def _ready(self) -> List[_Process]:
        return [worker for worker in self._workers if worker.is_ready]

    @property
    def n_ready(self) -> int:
        """See ``ThreadHands``."""
        return len(self._ready)

    @property
    def is_busy(self) -> bool:
        """See ``ThreadHands``."""
        return any(worker.tasks for worker in self._workers)

    @property
    def has_room(self) -> bool:
        """See ``ThreadHands``."""
        return any(len(worker.tasks) < AT_ONCE for worker in self._ready)

    def give(self, task: int, value: Any) -> None:
        """See ``ThreadHands``."""
        min(self._ready, key=lambda worker: len(worker.tasks)).give(task, value)

    def wait(self, seconds: float) -> List[Done]:
        """See ``ThreadHands``.

        RAISES (WorkerError): If one more has died.
        """
        pipes = {worker.pipe: worker for worker in self._workers}
        ends = {worker.process.sentinel: worker for worker in self._workers}
        found = connection.wait([*pipes, *ends], seconds)
        done: List[Done] = []
        dead: List[_Process] = []
        for each in found:
            worker = pipes.get(each)  # type: ignore[call-overload]
            if worker is None or worker in dead:
                continue
            try:
                done += self._hear(worker)
            except (EOFError, OSError):
                dead.append(worker)
        for each in found:
            worker = ends.get(each)
            if worker is not None and worker not in dead and worker.pipe not in found:
                dead.append(worker)
        for worker in dead:
            self._replace(worker)
        return done

    def _hear(self, worker: _Process) -> List[Done]:
        task, _, value = receive(worker.pipe, worker.slots)
        worker.is_ready = True
        if task == READY:
            return []
        del worker.tasks[task]
        return [Done(task, value, worker.number)]

    def _replace(self, worker: _Process) -> None:
        worker.process.join(5.0)
        text = f"its process {worker.process.pid} {_how_it_ended(worker.process.exitcode)}"
        was_ready, tasks = worker.is_ready, worker.tasks
        number = worker.number
        if not was_ready:
            text += " before it could begin; see its own message"
        if self._has_died or not was_ready:
            raise WorkerError(number, text)
        self._has_died = True
        with self._starting:
            if self._is_over:
                raise WorkerError(number, text)
            worker.end()
            self._workers[number] = self._start(number)
        self._note(f"Loader worker {number}: {text}. Another one takes its place.")
        for task, (_, value) in sorted(tasks.items()):
            self._workers[number].give(task, value)

    def end(self) -> None:
        """End them, whatever they are at."""
        atexit.unregister(self.end)
        with self._starting:
            self._is_over = True
            for worker in self._workers:
                worker.end()
            self._workers.clear()


def _how_it_ended(code: Any) -> str:
    if code is None:
        return "closed its connection"
    if code >= 0:
        return f"ended, with exit code {code}"
    known = {each.value for each in signal.Signals}
    name = signal.Signals(-code).name if -code in known else f"signal {-code}"
    return f"was killed by {name}" + " (too little memory?)" * (-code == signal.SIGKILL)


# --- in the process ---------------------------------------------------------------------


def run_worker(pipe: Connection, slots: Tuple[int, ...], make_work: MakeWork, parent: int) -> None:
    """Carry out tasks until nobody asks any more. If the parent goes, so does this process.

    parent (int): Its number.
    """
    leave_signals_to_parent()
    os.nice(NICENESS)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        send(pipe, slots, 0, READY, None)
        work = None
        while True:
            task, slot, value = receive(pipe, slots)
            try:
                work = work or make_work()
                made = work(value)
            except BaseException as error:
                made = Failure.of(error)._replace(cause=None)
            try:
                send(pipe, slots, slot, task, made)
            except OSError:
                raise
            except Exception as error:  # Of pickling: nothing is sent yet.
                send(pipe, slots, slot, task, Failure(CANNOT_GO.format(error)))
    except (EOFError, OSError):
        pass
    with suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)


def _end_with(parent: int) -> None:
    """Wait until the parent is gone, and end the process wherever it is."""
    known = multiprocessing.parent_process()
    is_forked = os.getppid() == parent
    while known is not None:
        # Processes that fork hold what tells of the end of their parent for each other.
        if connection.wait([known.sentinel], 1.0 if is_forked else None):
            break
        if is_forked and os.getppid() != parent:
            break
    os._exit(0)
