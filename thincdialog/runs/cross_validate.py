"""Cross-validation: evaluate each example with a model that was trained without it."""

import io
import re
import statistics
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Mapping, Optional, TextIO, Tuple

import numpy as np

from ..config import ConfigLike
from ..contract import reason
from ..errors import DataError, OutputError
from ..evaluation.evaluate import agent_in_detail
from ..examples.split import Split
from ..loader.failure import Failure
from ..loader.starting import check_script_is_guarded
from ..loader.worker_process import Advice, WorkerProcess
from ..messages import Episode
from ..metrics.confusion import ConfusionMatrix
from ..teachers.held_out import conversation_of
from ..training.experiment import CodeLike, Experiment, Overrides, PathLike
from ..training.problems import check_training
from .output_folder import check_output
from .train import train

ADVICE = Advice("use the command cross-validate", "Train fewer folds at the same time (-j)")


@dataclass
class Fold:
    """Hold the results of one fold.

    error (str): Reason why the fold failed; "" if it did not.
    scores (Dict[str, float]): Metric to value.
    confusion (ConfusionMatrix): Counts of right class and replied class; empty for rankers.
    wrong (List[Dict[str, Any]]): A row for each wrong reply.
    has_pairs (bool): Whether each example has one right class and one replied class, which is not
        so if a text has several labels.
    notes (List[str]): Lines that training wrote to stderr, such as warnings.
    """

    error: str = ""
    scores: Dict[str, float] = field(default_factory=dict)
    confusion: ConfusionMatrix = field(default_factory=ConfusionMatrix)
    wrong: List[Dict[str, Any]] = field(default_factory=list)
    has_pairs: bool = False
    notes: List[str] = field(default_factory=list)


@dataclass
class CrossValidation:
    """Hold the results of ``cross_validate``.

    folds (List[Fold]): All folds in order, including those that failed.
    """

    folds: List[Fold]

    @property
    def scores(self) -> Dict[str, Tuple[float, float]]:
        """Metric to its mean and standard deviation over the folds that did not fail; without
        metrics that only some of these folds have."""
        good = [fold.scores for fold in self.folds if not fold.error]
        names = [name for name in next(iter(good), {}) if all(name in each for each in good)]
        columns = {name: [scores[name] for scores in good] for name in names}
        return {
            name: (statistics.fmean(values), statistics.stdev(values) if values[1:] else 0.0)
            for name, values in columns.items()
        }

    @property
    def confusion(self) -> ConfusionMatrix:
        """The counts of all folds together."""
        matrix = ConfusionMatrix()
        for fold in self.folds:
            matrix.counts.update(fold.confusion.counts)
        return matrix

    @property
    def notes(self) -> Dict[str, List[int]]:
        """Note to the numbers of the folds that it came from, from 1."""
        found: Dict[str, List[int]] = {}
        for number, fold in enumerate(self.folds, 1):
            for note in fold.notes:
                found.setdefault(note, []).append(number)
        return found


def cross_validate(
    config: ConfigLike,
    *,
    folds: int = 5,
    jobs: int = 1,
    output: Optional[PathLike] = None,
    overrides: Overrides = None,
    code: CodeLike = None,
    done: Callable[[int, Fold], None] = lambda number, fold: None,
) -> CrossValidation:
    """Divide the training data of each task into folds, and for each fold, train a model on the
    other folds and test it on this fold. The dev split of the config is used unchanged.

    Each label is spread evenly over the folds, and a conversation is never split. Each fold is
    trained in a separate process, and a fold that fails does not end the others.

    config (ConfigLike): Path of a config, its text, a Config, or a dict of its sections.
    folds (int): Number of folds, 2 or more.
    jobs (int): Number of folds to train at the same time.
    output (Optional[PathLike]): Folder for the models of the folds; None saves no models.
    overrides (Optional[Mapping[str, Any]]): "section.key" to value.
    code (CodeLike): Python file or files to import first.
    done (Callable): Called with the number of each fold, from 1, and the fold, in order.
    RETURNS (CrossValidation): Scores, counts and wrong replies.
    RAISES (DialogError): Before any training, if the config or the data has mistakes, or if the
        folder is not empty.
    """
    check_script_is_guarded("cross_validate()", ADVICE.without)
    folder = None if output is None else Path(output)
    if folder is not None and folder.is_dir() and any(folder.iterdir()):
        raise OutputError(f"{folder}  is not empty. Choose another folder with --output.")
    check_output(folder, force=False)
    # Stores and worker processes would read all of the data.
    changes = {**(overrides or {}), "loader.store": None, "loader.workers": 0}
    changes["loader.preprocess"] = False
    experiment = Experiment.from_config(config, changes, code)
    with experiment.working():
        hold_out(experiment, 0, folds)
    processes: List[WorkerProcess] = []
    is_over = Event()

    def run(number: int) -> Fold:
        """Train a fold in a process, which may start processes itself."""
        process = WorkerProcess(number, FoldWorker, ADVICE, is_daemon=False)
        processes.append(process)
        if is_over.is_set():
            process.kill()
        process.begin()
        fold = process.run_fold(config, changes, code, folds, folder, number)
        process.close()
        return Fold(fold.text) if isinstance(fold, Failure) else fold

    found = []
    with ThreadPoolExecutor(jobs) as threads:
        futures = [threads.submit(run, number) for number in range(folds)]
        try:
            for number, future in enumerate(futures, 1):
                found.append(future.result())
                done(number, found[-1])
        finally:  # After a signal, end the running folds, and begin no further fold.
            threads.shutdown(wait=False, cancel_futures=True)
            is_over.set()
            for process in processes[:]:
                process.kill()
    return CrossValidation(found)


class FoldWorker:
    """Train and test one fold in a process of its own."""

    world = None

    def run_fold(self, *given: Any) -> Fold:
        """Return the results of the fold, or the error that ended it. Arguments are as for the
        function ``run_fold``, except the first."""
        written = io.StringIO()
        try:
            fold = run_fold(written, *given)
        except Exception as error:  # After any error, the other folds may still succeed.
            fold = Fold(reason(error))
        # A line that begins with a space continues the note above it.
        fold.notes = re.findall(r"^\S.*(?:\n .*)*", written.getvalue(), re.MULTILINE)
        return fold


def run_fold(
    written: TextIO,
    config: ConfigLike,
    overrides: Mapping[str, Any],
    code: CodeLike,
    n_folds: int,
    folder: Optional[Path],
    number: int,
) -> Fold:
    """Train without a fold, and test on it. Other arguments are as for ``cross_validate``.

    written (TextIO): Stream for the notes of training.
    number (int): Number of the fold, from 0.
    """
    experiments: List[Experiment] = []

    def prepare(experiment: Experiment) -> None:
        hold_out(experiment, number, n_folds)
        experiments.append(experiment)

    place = None if folder is None else folder / f"fold-{number + 1}"
    quiet: Any = {"stdout": io.StringIO(), "stderr": written}
    train(config, output=place, overrides=overrides, code=code, prepare=prepare, **quiet)
    (experiment,) = experiments
    with experiment.working():
        found = agent_in_detail(experiment, experiment.evaluation_split("test"), "test", 0)
    fold = Fold(scores=found.scores)
    if found.has_classes:
        fold.confusion, fold.has_pairs = found.confusion(), not found.has_label_sets
    for line in (row.as_json((), 1) for row in found.rows):
        if line.get("right") is False:
            (best,) = line.get("candidates") or [{}]
            if found.has_label_sets:
                line["reply"] = "|".join(line["reply"])
            kept = {name: line.get(name) for name in ("task", "id", "text", "reply")}
            more = {"score": best.get("score"), "labels": "|".join(line["labels"])}
            fold.wrong.append({"fold": number + 1, **kept, **more})
    return fold


# --- folds ----------------------------------------------------------------------------


def draw_folds(labels: Mapping[str, str], n_folds: int) -> Dict[str, int]:
    """Divide conversations into folds, so that each label is spread evenly and the sizes of the
    folds differ by at most one.

    labels (Mapping[str, str]): Name of each conversation to its label.
    RETURNS (Dict[str, int]): Name to the number of its fold, from 0.
    """
    names = np.random.default_rng(0).permutation(sorted(labels)).tolist()
    return {name: n % n_folds for n, name in enumerate(sorted(names, key=labels.__getitem__))}


def _episodes(data: Split, names: FrozenSet[str]) -> Iterator[Episode]:
    return (each for each in data.source_episodes(None) if conversation_of(each) in names)


def hold_out(experiment: Experiment, number: int, n_folds: int) -> None:
    """Make each task of an experiment train without a fold, and test on it.

    number (int): Number of the fold, from 0.
    n_folds (int): Number of folds.
    RAISES (DataError): If there are fewer conversations than folds, or there is no training data.
    """
    check_training(experiment)
    experiment.has_own_data = True
    for task in experiment.tasks.values():
        task.data.pop("test", None)
        if "train" not in task.splits:
            continue
        data = task.data["train"]
        labels: Dict[str, str] = {}
        for episode in data.source_episodes(None):
            answers = (label for turn in episode for label in turn.get("labels") or ())
            labels.setdefault(conversation_of(episode), next(answers, ""))
        if not 2 <= n_folds <= len(labels):
            text = f"has {len(labels)} conversations or examples, expected 2 to as many folds"
            raise DataError(data.origin, f"{text}, and not {n_folds}")
        fold_of = draw_folds(labels, n_folds)
        for split, is_held_out in (("train", False), ("test", True)):
            part = data.bare()
            names = (name for name in labels if (fold_of[name] == number) == is_held_out)
            source: Any = partial(_episodes, data, frozenset(names))
            source.bad = getattr(data.source, "bad", {})  # Counted while the data is read.
            part.name, part.source = split, source
            task.data[split] = part
