"""Hogwild's workers as processes: each makes what it needs from the config."""

import hashlib
import multiprocessing
import os
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple

import numpy
from thinc.api import set_current_ops

from ..config import build_block, load_code, load_config, write_config
from ..errors import ConfigError, DataError, DialogError, Problem
from ..ops.choice import ops_to_train
from ..optimizers.shared_state import StepSettings, settings_of, use_state
from ..optimizers.state import KEY
from ..teachers import Teacher
from ..training.experiment import Experiment
from .process_crew import ProcessCrew
from .shared_arrays import SharedArrays
from .step_numbers import StepNumbers
from .worker import Worker

WEIGHTS, CELLS = "weights", "cells"
# Texts that are hashed at once.
CHUNK = 4096
# Episodes of a stream that are compared: where the order is another one (a set of texts), it is so
# from the beginning.
N_FIRST = 256


def start_processes(
    experiment: Experiment,
    teacher: Teacher,
    state: Mapping[str, Any],
    n_workers: int,
    at_once: int,
    is_ending: Callable[[], bool],
) -> Tuple[ProcessCrew, StepNumbers]:
    """The processes of all workers, with the weights and the optimizer's state in common,
    and the numbers that they draw from.

    experiment (Experiment): Of the run: weights and state move into the shared memory.
    teacher (Teacher): Of the training data.
    state (Mapping[str, Any]): From ``lay_out_state``.
    at_once (int): Workers at steps at the same time.
    is_ending (Callable[[], bool]): Whether the run is to end.
    RAISES (DialogError): If the agent cannot be handed over.
    RAISES (WorkerError): If a process cannot begin, or reads other training data.
    """
    if os.name == "nt":
        text = '[runner] executor = "process" needs Linux or macOS'
        raise ConfigError([Problem("", text, 'set executor = "thread"')])
    agent, spawning = experiment.learner, multiprocessing.get_context("spawn")
    shared = SharedArrays({CELLS: numpy.zeros(2, dtype="q"), WEIGHTS: agent.weights, **state})
    agent.use_weights(shared.arrays[WEIGHTS])
    use_state(experiment.optimizer, KEY, shared.arrays)
    lock, turns = spawning.Lock(), spawning.BoundedSemaphore(at_once)
    numbers = StepNumbers(shared.arrays[CELLS], lock, turns)  # type: ignore[arg-type]
    arguments = {
        "config": write_config(experiment.checked.config),
        "code": experiment.code,
        "n_workers": n_workers,
        "at_once": at_once,
        "settings": settings_of(experiment.optimizer),
        "data": data_prints(teacher),
        "shared": shared,
        "lock": lock,
        "turns": turns,
    }
    try:
        handed_over = tempfile.TemporaryDirectory(prefix="thincdialog-")
    except OSError as error:
        raise _not_written(error.filename or tempfile.gettempdir(), error) from None
    with handed_over as folder:
        try:
            agent.to_disk(Path(folder))
        except OSError as error:
            raise _not_written(folder, error) from None
        arguments["folder"] = folder
        crew = ProcessCrew(make_process_worker, n_workers, arguments, numbers.stop, is_ending)
    return crew, numbers


def _not_written(folder: str, error: OSError) -> DialogError:
    return DialogError(
        f"{folder}  could not be written: {error.strerror or error}. Worker processes get the "
        "agent from there: free some space, or set TMPDIR to another folder."
    )


def make_process_worker(
    number: int,
    *,
    config: str,
    code: Optional[str],
    n_workers: int,
    at_once: int,
    settings: Mapping[str, float],
    data: Mapping[str, str],
    shared: SharedArrays,
    lock: Any,
    turns: Any,
    folder: str,
) -> Worker:
    """What the process of a worker runs first: the same as its parent, from the config.

    number (int): Of the worker, from 0.
    config (str): Its text.
    code (Optional[str]): Python file to import first.
    settings (Mapping[str, float]): Of the run's optimizer as they are.
    data (Mapping[str, str]): From ``data_prints``, of the parent.
    shared (SharedArrays): The weights, the state of the optimizer, cells of ``StepNumbers``.
    lock, turns (Any): Of ``StepNumbers``, too.
    folder (str): Where the agent was saved; not needed afterwards.
    RAISES (DialogError): If the config names functions that nobody has registered here.
    RAISES (DataError): If the training data is another one here.
    """
    load_code(code)
    try:
        checked = load_config(config, {})
    except ConfigError as error:  # The parent found nothing wrong: it knows more names.
        problems = "; ".join(problem.text for problem in error.problems)
        raise DialogError(
            f"{problems}. A process knows only functions that it has imported itself: put your "
            'own into a file given with --code (in Python: train(..., code="FILE.py")), or set '
            '[runner] executor = "thread".'
        ) from None
    set_current_ops(ops_to_train(checked.interpolated["system"]))
    experiment = Experiment(checked, code)
    teacher = experiment.training_split()
    _check_data(teacher, data)
    agent = experiment.learner
    agent.from_disk(Path(folder), tokenizer=experiment.tokenizer)
    agent.use_weights(shared.arrays[WEIGHTS])
    use_state(experiment.optimizer, KEY, shared.arrays)
    schedules = build_block(checked, "training.optimizer")
    cells: Any = shared.arrays[CELLS]
    return Worker(
        experiment,
        teacher,
        number,
        n_workers,
        experiment.optimizer,
        StepSettings(schedules, settings),
        StepNumbers(cells, lock, turns),
        at_once,
    )


def data_prints(teacher: Teacher) -> Dict[str, str]:
    """What the training data of each task comes to, in its order, as this process has read
    it; of a stream, its first episodes, and the size and time of its files.

    teacher (Teacher): Of the training data.
    RETURNS (Dict[str, str]): Task to checksum.
    """
    return {name: _print_of(task) for name, task in teacher.by_task().items()}


def _print_of(task: Teacher) -> str:
    if task.is_streamed(task.split):
        found, texts = hashlib.sha256(), _begin_of_stream(task)
    else:
        found = hashlib.sha256(f"{task.n_episodes} {task.n_examples}".encode())
        texts = task.texts()
    while chunk := list(islice(texts, CHUNK)):
        found.update("\0".join(["", *chunk]).encode("utf8", "surrogatepass"))
    return found.hexdigest()


def _begin_of_stream(task: Teacher) -> Iterator[str]:
    for episode in task.first_episodes(task.split, N_FIRST):
        for message in episode:
            yield message.get("text") or ""
            yield from message.get("labels") or ()
        yield ""
    for path in task.files(task.split):
        facts = os.stat(path)
        yield f"{facts.st_size} {facts.st_mtime_ns}"


def _check_data(teacher: Teacher, data: Mapping[str, str]) -> None:
    """RAISES (DataError): If what the parent has read is another data."""
    tasks = teacher.by_task()
    for name, of_parent in data.items():
        if _print_of(tasks[name]) != of_parent:
            text = (
                "the training data is another one in a worker process, or in another order, than "
                "in the one that started it: let files stay as they are while a run begins, and a "
                "teacher give every process the same examples in the same order (a set of texts "
                'does not), or set [runner] executor = "thread"'
            )
            raise DataError(tasks[name].data_name, text)
