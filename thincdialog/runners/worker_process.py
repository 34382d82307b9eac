"""Workers in separate processes."""

import atexit
import time
from contextlib import contextmanager
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Optional

from ..loader.starting import check_script_is_guarded
from ..loader.worker_process import Advice, WorkerProcess
from .crew import FEWER

REMEDY = 'set executor = "thread"'


@contextmanager
def worker_processes(
    n_workers: int,
    make_worker: Callable[..., Any],
    arguments: Dict[str, Any],
    inherited: Optional[Dict[str, Any]] = None,
) -> Iterator[List[WorkerProcess]]:
    """Run one process per worker, started with "spawn", while the context is open. Each process
    ends as soon as its parent ends, and leaves SIGINT, SIGTERM and SIGHUP to the parent.

    n_workers (int): Number of workers.
    make_worker (Callable[..., Worker]): Function at the top level of a module, which is called in
        each process with the number of the worker, from 0, and the arguments.
    arguments (Dict[str, Any]): Picklable arguments by name.
    inherited (Optional[Dict[str, Any]]): Further arguments, such as semaphores.
    RAISES (ConfigError): If this process is itself a worker that is importing the script.
    RAISES (WorkerError): If the system cannot start another process.
    """
    check_script_is_guarded('[runner] executor = "process"', REMEDY)
    workers: List[WorkerProcess] = []
    end = partial(_end, workers)
    # End processes at exit, before multiprocessing waits for them without a time limit.
    atexit.register(end)
    try:
        for number in range(n_workers):
            made = partial(make_worker, number, **arguments)
            advice = Advice(REMEDY, FEWER)
            workers.append(WorkerProcess(number, made, advice, inherited=inherited))
        yield workers
    finally:
        end()
        atexit.unregister(end)


def _end(workers: List[WorkerProcess]) -> None:
    """End the processes, killing them after one second in total; work in progress is lost."""
    for worker in workers:
        worker.close()
    until = time.monotonic() + 1.0
    while workers:
        workers[-1].exit_code(max(0.0, until - time.monotonic()))
        workers.pop().kill()
