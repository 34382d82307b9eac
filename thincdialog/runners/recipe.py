"""The data with which a worker in any process joins a run: config, code and agent."""

import os
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from ..config import write_config
from ..errors import ConfigError, DataError, DialogError
from ..files.held import AGENT, held, temporary_folder
from ..formats.context import tolerance
from ..teachers import Teacher
from ..training.experiment import Experiment
from .data_prints import data_prints


class Recipe(NamedTuple):
    """Hold the data from which a worker is built. It consists of bytes and texts, so it can be sent
    to any machine.

    config (str): The complete config.
    code (List[Tuple[str, bytes]]): Paths and contents of the files given with --code.
    agent (Dict[str, bytes]): Contents of the saved agent's files, by their paths.
    data (Optional[Mapping[str, str]]): Checksums of the training data (``data_prints``); None for
        processes that do not read it: a gradient server, and workers that only evaluate.
    folder (str): Folder in which the run was started, to which paths are relative.
    ops (str): Ops of the driver, because the result must not depend on the packages of a node.
    gpu_id (int): 0 if each worker has GPUs (a worker sees only its own GPUs); else -1.
    temporary (str): Folder for files of workers that are starting, which is deleted with the run;
        "" for the system's folder.
    unlabelled (bool): Whether examples to evaluate on may have no label.
    advice (str): What a user can do instead of using these workers, for errors; "": nothing.
    """

    config: str
    code: List[Tuple[str, bytes]]
    agent: Dict[str, bytes]
    data: Optional[Mapping[str, str]]
    folder: str
    ops: str
    gpu_id: int = -1
    temporary: str = ""
    unlabelled: bool = False
    advice: str = ""


def recipe_of(
    experiment: Experiment,
    teacher: Optional[Teacher],
    has_gpus: bool = False,
    temporary: str = "",
    advice: str = "",
) -> Recipe:
    """Make the recipe of an experiment for its workers.

    experiment (Experiment): The run's experiment.
    teacher (Optional[Teacher]): Teacher of the training data; None for workers that only evaluate.
    has_gpus (bool): Whether workers train on GPUs.
    temporary, advice (str): See ``Recipe``.
    RAISES (DialogError): If the agent cannot be written to a temporary folder, or if the experiment
        has its own data.
    """
    if experiment.has_own_data:
        text = "[runner] worker processes read the config's data, so they cannot train on folds"
        remedy = 'set executor = "thread" for hogwild, or num_workers = 0 for Ray'
        raise DialogError(f"{text}: {remedy}.")
    place = temporary_folder()
    with _explaining_full_disk(place), held(place / AGENT, 0o700, is_folder=True) as folder:
        experiment.agent.to_disk(folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        agent = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    code = [(path, Path(path).read_bytes()) for path in experiment.code]
    config = write_config(experiment.settled.config)
    gpu_id = 0 if has_gpus else -1
    data = None if teacher is None else data_prints(teacher)
    given = (os.getcwd(), experiment.ops_name, gpu_id, temporary, tolerance().unlabelled, advice)
    return Recipe(config, code, agent, data, *given)


def make_experiment(recipe: Recipe, node: str = "") -> Tuple[Experiment, Optional[Teacher]]:
    """Build the experiment of a recipe in another process, with its agent and the training data.

    recipe (Recipe): The recipe of the run.
    node (str): Name of this node, for errors; "" if it is that of the run.
    RETURNS (Tuple[Experiment, Optional[Teacher]]): The experiment, and the teacher of the training
        data, or None.
    RAISES (DialogError): If code, data or devices of this node differ from those of the run.
    """
    if os.path.isdir(recipe.folder):
        os.chdir(recipe.folder)
    place = Path(recipe.temporary) if recipe.temporary else temporary_folder()
    where = f" on node {node}" if node else ""
    advice = f", or {recipe.advice}" if recipe.advice else ""
    with ExitStack() as stack:
        with _explaining_full_disk(place, where):
            folder = stack.enter_context(held(place / AGENT, 0o700, is_folder=True))
            code = [_file_of(folder / str(n), *file) for n, file in enumerate(recipe.code)]
            for file, content in recipe.agent.items():
                path = folder / "agent" / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        try:
            overrides = {"system.gpu_id": recipe.gpu_id, "system.ops": recipe.ops}
            experiment = Experiment.from_config(recipe.config, overrides, code=code)
        except ConfigError as error:
            problems = "; ".join(problem.text for problem in error.problems)
            raise DialogError(
                f"{problems}{f' ({where[1:]})' if where else ''}. A worker knows only the packages "
                "of its node and functions that it has imported itself: put yours into a file, and "
                f'pass it with --code (in Python: train(..., code="FILE.py")){advice}.'
            ) from None
        except DialogError as error:
            if recipe.gpu_id < 0:
                raise
            raise DialogError(
                f"[runner] a worker{where} cannot use the GPU that Ray gives it: {error} "
                "To train on CPUs, set num_gpus_per_worker = 0."
            ) from None
        with experiment.working():
            teacher = None
            if recipe.data is not None:
                experiment.use_examples(sys.stderr, "none")
                teacher = _training_data(experiment, recipe, node)
            experiment.agent.from_disk(folder / "agent", tokenizer=experiment.tokenizer)
            if recipe.data is not None:
                experiment.use_tokens(sys.stderr, "none")
            else:
                experiment.prefer_classes()
    return experiment, teacher


@contextmanager
def _explaining_full_disk(place: Path, where: str = "") -> Iterator[None]:
    """Turn a failure to write workers' files into an error that names the folder and the node."""
    try:
        yield
    except OSError as error:
        raise DialogError(
            f"{place}  could not be written{where}: {error.strerror or error}. Workers get the "
            "agent from there: free some space, or set TMPDIR to another folder."
        ) from None


def _file_of(folder: Path, path: str, content: bytes) -> str:
    """Return the path of a file with the given content: the same path if this node has the file
    there, else the path of a copy with the same name in ``folder``."""
    known = Path(path)
    if known.is_file() and known.read_bytes() == content:
        return path
    here = folder / known.name
    folder.mkdir()
    here.write_bytes(content)
    return str(here)


def _training_data(experiment: Experiment, recipe: Recipe, node: str) -> Teacher:
    """Return the teacher of the training data, after a check that the data is that of the run."""
    try:
        experiment.check_data()
        teacher = experiment.training_split(with_metrics=False)
        here = data_prints(teacher)
    except DataError as error:
        if not node:
            raise
        text = f"node {node}: {error}. Every node must have the data under the same path"
        raise DialogError(text) from None
    check_same_data(teacher, here, recipe.data or {}, "training", node, recipe.advice)
    return teacher


def check_same_data(
    teacher: Teacher,
    here: Mapping[str, str],
    there: Mapping[str, str],
    split: str,
    node: str,
    advice: str = "",
) -> None:
    """Check that this process has the same data as the process that started the run.

    teacher (Teacher): Teacher of the split in this process.
    here, there (Mapping[str, str]): Checksums (``data_prints``) of the data in this process, and of
        the data of the run.
    split (str): Name of the split, for errors.
    node, advice (str): See ``make_experiment``.
    RAISES (DataError): If the data differs.
    """
    for name in (name for name in there if here[name] != there[name]):
        where = f"on node {node}" if node else "of a worker process"
        text = (
            f"the {split} data {where} differs from the data of the run, or is in another order. "
            "Files must be the same on every node, and must not change while a run begins, and a "
            "teacher must give every process the same examples in the same order (a set of texts "
            "does not)"
        )
        text += f". Fix that, or {advice}" if advice else ""
        raise DataError(teacher.by_task()[name].order.origin, text)
