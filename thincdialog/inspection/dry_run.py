"""Run everything up to the first step of training, to check that training will start."""

import math
import sys
import tracemalloc
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, TextIO, Union, cast

from ..config import ConfigLike
from ..evaluation.evaluate_agent import evaluate_agent
from ..ops.device_memory import held_bytes
from ..runs.output_folder import check_contents, check_output
from ..runs.train import TrainingRun, measure_baselines
from ..training.experiment import CodeLike, Experiment, Overrides
from ..training.selection import Selection
from ..training.triggers import TrainingLimits
from .trial import Trial

# Minimum number of examples of each task to evaluate.
LEAST_EVALUATED = 64
# Number of further steps, to estimate the mean batch size if batches are formed by length.
MORE_STEPS = 9


@dataclass
class DryRun:
    """Hold the result of ``dry_run()``. Sizes are in bytes.

    examples (Dict[str, Dict[str, Optional[int]]]): Task to split to the number of examples; None if
        the number is not known before all are read.
    n_parameters (int): Number of weights; 0 for an agent without weights.
    step_examples (int): Number of examples in the first step.
    steps_per_epoch (Optional[int]): Number of steps in an epoch if all are like the first, or (for
        batches formed by length) like the first few.
    total_steps (Optional[int]): Number of steps of the whole run, by its limits of epochs and
        steps.
    loss (Optional[float]): Loss of the first step.
    memory (Dict[str, int]): Memory of the run: weights, gradients, optimizer, best weights, and the
        peak of additional memory in the first batch.
    dev (Dict[str, float]): Scores on a small part of the dev data.
    """

    examples: Dict[str, Dict[str, Optional[int]]]
    n_parameters: int = 0
    step_examples: int = 0
    steps_per_epoch: Optional[int] = None
    total_steps: Optional[int] = None
    loss: Optional[float] = None
    memory: Dict[str, int] = field(default_factory=dict)
    dev: Dict[str, float] = field(default_factory=dict)


def dry_run(
    config: ConfigLike,
    *,
    output: Union[str, Path, None] = None,
    overrides: Overrides = None,
    force: bool = False,
    resume: bool = False,
    code: CodeLike = None,
    stderr: Optional[TextIO] = None,
) -> DryRun:
    """Do the same as ``train()`` up to its first step, and evaluate the agent and the baselines on
    a small part of the dev and test data. No files are written. Loggers are not set up, because
    they may write.

    config (ConfigLike): Path of a config, its text, a Config, or a dict of its sections.
    output (Union[str, Path, None]): The run's folder, whose contents are checked but not changed.
    overrides (Optional[Mapping[str, Any]]): "section.key" to value.
    force, resume (bool): As for ``train()``.
    code (CodeLike): Python file or files to import first.
    stderr (Optional[TextIO]): Stream for progress; sys.stderr if None.
    RETURNS (DryRun): Counts, sizes and the first loss.
    RAISES (DialogError): The errors that ``train()`` would raise.
    """
    trial = cast(Trial, Trial.from_config(config, overrides, code))
    stream = stderr or sys.stderr
    with trial.working():
        run = TrainingRun(trial, None, stream, stream)
        if output is None:
            check_output(None, force, resume)
        else:
            check_contents(Path(output), force, resume)
        trial.use_examples(stream, "none")
        found = DryRun(
            {
                name: {split: task.for_split(split).n_examples for split in task.splits}
                for name, task in trial.tasks.items()
            }
        )
        run.note_bad_data()
        trial.teacher = run.teacher
        trial.initialize(trial.teacher, stream, "none")
        trial.use_tokens(stream, "none")
        if trial.agent.learns:
            _take_step(trial, found)
        _evaluate(trial, found)
        return found


def _take_step(trial: Trial, found: DryRun) -> None:
    """Make the first training step, in memory only."""
    agent, optimizer, teacher = trial.learner, trial.optimizer, trial.teacher
    steps = trial.steps()
    with _measuring(agent.weights) as taken:
        next(steps)
    found.loss = agent.gathered_loss()
    found.step_examples = examples = agent.update(optimizer).examples
    per_step = float(examples)
    if getattr(getattr(trial.world, "batcher", None), "needs_lengths", False):
        for _ in range(MORE_STEPS):
            next(steps)
            examples += agent.update(optimizer).examples
        per_step = examples / (1 + MORE_STEPS)
    steps.close()
    found.n_parameters = agent.n_weights
    if teacher.n_examples:
        found.steps_per_epoch = math.ceil(teacher.n_examples / per_step)
    found.total_steps = TrainingLimits.of(trial.training).total_steps(found.steps_per_epoch)
    weights = int(agent.weights.nbytes)
    n_workers = trial.runner.n_workers  # All workers share the weights.
    found.memory = {
        "weights": weights,
        "gradients": weights * n_workers,
        "optimizer": _optimizer_bytes(optimizer, weights),
        "best weights": weights,
        "batch": max(0, *taken) * n_workers,
    }


@contextmanager
def _measuring(weights: Any) -> Iterator[List[int]]:
    """Measure the peak of additional memory in the block; at its end, append the bytes to the
    yielded list."""
    taken: List[int] = []
    held = held_bytes(weights)
    if held is not None:
        yield taken
        taken.append((held_bytes(weights) or held) - held)
        return
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        yield taken
        taken.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()


def _optimizer_bytes(optimizer: Any, weights: int) -> int:
    kept = [getattr(optimizer, name, None) or {} for name in ("mom1", "mom2")]
    size = sum(int(array.nbytes) for arrays in kept for array in arrays.values())
    # Averages begin at a later step. They have the size of the weights.
    return size + (weights if getattr(optimizer, "averages", None) is not None else 0)


def _evaluate(experiment: Experiment, found: DryRun) -> None:
    """Evaluate a part of the dev and test data, and check that the results include the score for
    the selection of the best model."""
    few = max(LEAST_EVALUATED, found.step_examples)
    few = min(experiment.evaluation["max_examples"] or few, few)
    known = {
        split: experiment.evaluation_split(split, max_examples=few)
        for split in ("dev", "test")
        if experiment.has_split(split)
    }
    for split, teacher in known.items():
        report = evaluate_agent(experiment.agent, teacher, experiment.make_evaluation_world)
        if split == "dev":
            found.dev = report
            if experiment.agent.learns:
                Selection(experiment.training, has_dev=True).see(report, 0)
    measure_baselines(experiment, known)


def split_counts(found: DryRun) -> List[List[str]]:
    """Return the header and rows of a table: the number of examples of each task and split."""
    splits = list(dict.fromkeys(name for counts in found.examples.values() for name in counts))
    rows = [["examples", *splits]]
    for task, counts in found.examples.items():
        known = {name: "not known" if n is None else f"{n:,}" for name, n in counts.items()}
        rows.append([task, *(known.get(name, "-") for name in splits)])
    return rows
