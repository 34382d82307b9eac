"""Hogwild workers in processes, which build their own agent and read the data from the config."""

import os
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, Dict, Iterator, Mapping, Tuple, cast

import numpy
from thinc.api import set_current_ops

from ..errors import ConfigError, DialogError, Problem
from ..optimizers.shared_state import lay_out_state, settings_of, use_state
from ..optimizers.state import KEY
from ..teachers import Teacher
from ..training.experiment import Experiment
from .recipe import Recipe, make_experiment, recipe_of
from .shared_arrays import SharedMemory, open_arrays, shared_arrays
from .step_numbers import StepNumbers
from .worker import Worker
from .worker_process import REMEDY

WEIGHTS, CELLS = "weights", "cells"
ADVICE = 'set [runner] executor = "thread"'


@contextmanager
def shared_with_processes(
    experiment: Experiment, teacher: Teacher, n_workers: int, at_once: int
) -> Iterator[Tuple[StepNumbers, Dict[str, Any], Dict[str, Any]]]:
    """Move the run's weights and the optimizer's state into memory that processes share. While the
    context is open, processes can begin.

    experiment (Experiment): The run's experiment.
    teacher (Teacher): Teacher of the training data.
    n_workers (int): Number of workers.
    at_once (int): Number of workers that make steps at the same time.
    YIELDS (Tuple[StepNumbers, Dict[str, Any], Dict[str, Any]]): The counter of steps, and the
        arguments of ``make_process_worker`` except ``number``: those to send, and those that only a
        new process can get.
    RAISES (DialogError): If memory or semaphores cannot be shared, or if the system is Windows.
    """
    if os.name == "nt":
        text = '[runner] executor = "process" needs Linux or macOS'
        raise ConfigError([Problem("", text, 'set executor = "thread"')])
    agent, optimizer = experiment.learner, experiment.optimizer
    state = lay_out_state(optimizer, KEY, agent.weights)
    given = {CELLS: numpy.zeros(2, dtype="q"), WEIGHTS: agent.weights, **state}
    layout = [(name, array.shape, array.dtype.str) for name, array in given.items()]
    semaphore = get_context("spawn").BoundedSemaphore
    try:
        drawing = (semaphore(1), semaphore(at_once), at_once)
    except OSError as error:
        raise DialogError(
            f"[runner] processes cannot share semaphores: {error.strerror}. Free some space in "
            f"/dev/shm, raise the limit (ulimit -a shows all), or {REMEDY}."
        ) from None
    with shared_arrays(layout, REMEDY) as (memory, arrays):
        for name, array in given.items():
            arrays[name][:] = array
        agent.use_weights(arrays[WEIGHTS])
        use_state(optimizer, KEY, arrays)
        arguments = {
            "recipe": recipe_of(experiment, teacher, advice=ADVICE),
            "n_workers": n_workers,
            "settings": settings_of(optimizer),
            "memory": memory,
        }
        yield StepNumbers(arrays[CELLS], *drawing), arguments, {"drawing": drawing}


def make_process_worker(
    number: int,
    *,
    recipe: Recipe,
    n_workers: int,
    settings: Mapping[str, float],
    memory: SharedMemory,
    drawing: Tuple[Any, ...],
) -> Worker:
    """Build the worker of this process from the same config as in the parent.
    ``shared_with_processes`` yields the arguments that are not described here.

    number (int): Number of the worker, from 0.
    RAISES (DialogError): If the config names functions that are not registered in this process, or
        if this process reads different training data than the parent, or reads it in another order.
    """
    experiment, teacher = make_experiment(recipe)
    set_current_ops(experiment.ops)
    with experiment.working():
        arrays = open_arrays(memory)
        experiment.learner.use_weights(arrays[WEIGHTS])
        use_state(experiment.optimizer, KEY, arrays)
        numbers = StepNumbers(arrays[CELLS], *drawing)
        share = cast(Teacher, teacher).share_of(number, n_workers, reads_apart=True)
        return Worker(experiment, share, settings, numbers)
