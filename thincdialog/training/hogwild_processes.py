"""Workers of hogwild that are processes: each makes what it needs from the config."""

import hashlib
import os
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional

from thinc.api import Optimizer, set_current_ops

from ..agents.model_agent import ModelAgent
from ..config import CheckedConfig, load_code, load_config, resolve_config, write_config
from ..errors import ConfigError, DataError, DialogError
from ..models.parameters import KEY
from ..ops.choice import ops_to_train
from ..optimizers.shared_state import for_a_worker, use_state
from ..parallel import ProcessWorkers, Recipe, SharedArrays
from ..teachers import Teacher
from ..worlds.world_worker import Workers
from .learning_worker import LearningWorker, learning_worker
from .task import by_task, split_of

VALUES = "values"
# Texts that are hashed at once.
CHUNK = 4096
# Episodes of a stream that are compared: where the order is another one (a set of texts), it is so
# from the beginning.
N_FIRST = 256


def worker_processes(
    checked: CheckedConfig,
    agent: ModelAgent,
    teacher: Teacher,
    optimizer: Optimizer,
    state: Mapping[str, Any],
    code: Optional[str],
) -> Workers:
    """The processes of all workers, with the weights and the optimizer's state in common.

    checked (CheckedConfig): The run's config.
    agent (ModelAgent): Whose weights are learnt; they move into the shared memory.
    teacher (Teacher): Of the training data.
    optimizer (Optimizer): The run's; its state moves, too.
    state (Mapping[str, Any]): From ``lay_out_state``.
    code (Optional[str]): Python file that was imported first.
    RAISES (DialogError): If the agent cannot be handed over.
    RAISES (WorkerError): If a process cannot begin, or reads other training data.
    """
    n_workers: int = checked.interpolated["hogwild"]["workers"]
    values: Any = agent.parameters.values
    shared = SharedArrays({VALUES: values, **state})
    agent.parameters.move(shared.arrays[VALUES])  # type: ignore[arg-type]
    use_state(optimizer, KEY, shared.arrays)
    arguments = {
        "config": write_config(checked.config),
        "code": code,
        "n_workers": n_workers,
        "data": data_prints(teacher),
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
        recipe = Recipe(make_process_worker, {**arguments, "folder": folder}, folder)
        return ProcessWorkers(recipe, n_workers, shared)


def _not_written(folder: str, error: OSError) -> DialogError:
    return DialogError(
        f"{folder}  could not be written: {error.strerror or error}. Worker processes get the "
        "agent from there: free some space, or set TMPDIR to another folder."
    )


def make_process_worker(
    number: int,
    arrays: Mapping[str, Any],
    config: str,
    code: Optional[str],
    n_workers: int,
    data: Mapping[str, str],
    folder: str,
) -> LearningWorker:
    """What the process of a worker runs first: the same as its parent, from the config.

    number (int): Of the worker, from 0.
    arrays (Mapping[str, Any]): The weights, and the state of the optimizer.
    config (str): Its text.
    code (Optional[str]): Python file to import first.
    n_workers (int): How many there are.
    data (Mapping[str, str]): From ``data_prints``, of the parent.
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
            '[hogwild] executor = "thread".'
        ) from None
    set_current_ops(ops_to_train(checked.interpolated["system"]))
    parts = resolve_config(checked)
    teacher = split_of(checked, parts, "train", training=True)
    _check_data(teacher, data)
    agent: ModelAgent = parts["agent"]
    agent.from_disk(Path(folder), tokenizer=parts["tokenizer"])
    agent.parameters.move(arrays[VALUES])
    optimizer = for_a_worker(parts["training"]["optimizer"])
    use_state(optimizer, KEY, arrays)
    # As in threads: a replica knows that others change the same weights.
    share, replica = teacher.share_of(number, n_workers), agent.replica()
    return learning_worker(number, parts, share, replica, optimizer)


def data_prints(teacher: Teacher) -> Dict[str, str]:
    """What the training data of each task comes to, in its order, as this process has read
    it; of a stream, its first episodes, and the size and time of its files.

    teacher (Teacher): Of the training data.
    RETURNS (Dict[str, str]): Task to checksum.
    """
    return {name: _print_of(task) for name, task in by_task(teacher).items()}


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
    tasks = by_task(teacher)
    for name, of_parent in data.items():
        if _print_of(tasks[name]) != of_parent:
            text = (
                "the training data is another one in a worker process, or in another order, than "
                "in the one that started it: let files stay as they are while a run begins, and a "
                "teacher give every process the same examples in the same order (a set of texts "
                'does not), or set [hogwild] executor = "thread"'
            )
            raise DataError(tasks[name].data_name, text)
