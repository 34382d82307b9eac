"""Hogwild workers in processes, which build their own agent and read the data from the config."""

import os
import sys
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Tuple

import numpy
from thinc.api import set_current_ops

from ..config import write_config
from ..errors import ConfigError, DataError, DialogError, Problem
from ..files.held import AGENT, held
from ..optimizers.shared_state import lay_out_state, settings_of, use_state
from ..optimizers.state import KEY
from ..protocol import Learner
from ..teachers import Teacher
from ..training.experiment import Experiment
from .data_prints import data_prints
from .shared_arrays import SharedMemory, open_arrays, shared_arrays
from .step_numbers import StepNumbers
from .worker import Worker
from .worker_process import REMEDY

WEIGHTS, CELLS = "weights", "cells"


@contextmanager
def shared_with_processes(
    experiment: Experiment, teacher: Teacher, n_workers: int, at_once: int
) -> Iterator[Tuple[StepNumbers, Dict[str, Any]]]:
    """Move the run's weights and the optimizer's state into memory that processes share. While the
    context is open, processes can begin.

    experiment (Experiment): The run's experiment.
    teacher (Teacher): Teacher of the training data.
    n_workers (int): Number of workers.
    at_once (int): Number of workers that make steps at the same time.
    YIELDS (Tuple[StepNumbers, Dict[str, Any]]): The counter of steps, and the arguments of
        ``make_process_worker`` except ``number``.
    RAISES (DialogError): If there is too little memory, or if the system is Windows.
    """
    if os.name == "nt":
        text = '[runner] executor = "process" needs Linux or macOS'
        raise ConfigError([Problem("", text, 'set executor = "thread"')])
    agent, optimizer = experiment.learner, experiment.optimizer
    state = lay_out_state(optimizer, KEY, agent.weights)
    given = {CELLS: numpy.zeros(2, dtype="q"), WEIGHTS: agent.weights, **state}
    layout = [(name, array.shape, array.dtype.str) for name, array in given.items()]
    spawning = get_context("spawn")
    drawing = (spawning.BoundedSemaphore(1), spawning.BoundedSemaphore(at_once), at_once)
    with shared_arrays(layout, REMEDY) as (memory, arrays):
        for name, array in given.items():
            arrays[name][:] = array
        agent.use_weights(arrays[WEIGHTS])
        use_state(optimizer, KEY, arrays)
        arguments = {
            "config": write_config(experiment.settled.config),
            "code": experiment.code,
            "n_workers": n_workers,
            "settings": settings_of(optimizer),
            "data": data_prints(teacher),
            "memory": memory,
            "drawing": drawing,
        }
        with folder_of(agent, experiment.scratch) as folder:
            yield StepNumbers(arrays[CELLS], *drawing), {**arguments, "folder": folder}


@contextmanager
def folder_of(agent: Learner, place: Path) -> Iterator[str]:
    """Save an agent to a temporary folder, from which processes load it, while the context is open.

    agent (Learner): The agent to save.
    place (Path): Folder in which the temporary folder is created.
    RAISES (DialogError): If the agent cannot be written.
    """
    with ExitStack() as stack:
        folder = place
        try:
            folder = stack.enter_context(held(place / AGENT, 0o700, is_folder=True))
            agent.to_disk(folder)
        except OSError as error:
            raise DialogError(
                f"{folder}  could not be written: {error.strerror or error}. Worker processes get "
                "the agent from there: free some space, or choose another folder with --output "
                "(or with TMPDIR if the run has no output folder)."
            ) from None
        yield str(folder)


def make_process_worker(
    number: int,
    *,
    config: str,
    code: List[str],
    n_workers: int,
    settings: Mapping[str, float],
    data: Mapping[str, str],
    memory: SharedMemory,
    drawing: Tuple[Any, ...],
    folder: str,
) -> Worker:
    """Build the worker of this process from the same config as in the parent.
    ``shared_with_processes`` yields the arguments that are not described here.

    number (int): Number of the worker, from 0.
    folder (str): Folder of the saved agent, which is only read during this call.
    RAISES (DialogError): If the config names functions that are not registered in this process.
    RAISES (DataError): If this process reads different training data than the parent, or reads it
        in another order.
    """
    try:
        experiment = Experiment.from_config(config, code=code)
    except ConfigError as error:  # The parent, which accepted the config, has more functions.
        problems = "; ".join(problem.text for problem in error.problems)
        raise DialogError(
            f"{problems}. A process knows only functions that it has imported itself: put "
            'yours into a file, and pass it with --code (in Python: train(..., code="FILE.py")), '
            'or set [runner] executor = "thread".'
        ) from None
    set_current_ops(experiment.ops)
    with experiment.working():
        experiment.use_examples(sys.stderr, "none")
        teacher = experiment.training_split(with_metrics=False)
        here = data_prints(teacher)
        for name in (name for name in data if here[name] != data[name]):
            text = (
                "a worker process reads different training data from the run, or in another order. "
                "Files must not change while a run begins, and a teacher must give every process "
                "the same examples in the same order (a set of texts does not). Fix that, or set "
                '[runner] executor = "thread"'
            )
            raise DataError(teacher.by_task()[name].order.origin, text)
        agent = experiment.learner
        agent.from_disk(Path(folder), tokenizer=experiment.tokenizer)
        experiment.use_tokens(sys.stderr, "none")
        arrays = open_arrays(memory)
        agent.use_weights(arrays[WEIGHTS])
        use_state(experiment.optimizer, KEY, arrays)
        numbers = StepNumbers(arrays[CELLS], *drawing)
        share = teacher.share_of(number, n_workers, reads_apart=True)
        return Worker(experiment, share, settings, numbers)
