"""Everything up to the first step of training, to see that it will run."""

import math
import sys
import tracemalloc
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, TextIO, Union

import numpy

from ..agents import ModelAgent
from ..config import ConfigLike, load_code, load_config
from ..errors import ConfigError, DataError
from ..evaluation.evaluate_agent import evaluate_agent
from ..ops.choice import using_ops
from ..runs.output_folder import check_contents, check_output
from ..runs.train import TrainingRun
from ..training.gradients import gather_gradient, gathered_loss
from ..training.interruption import Interruption
from ..training.packages import training_ops
from ..training.reading_bar import reading_bar
from ..training.selection import Selection
from ..training.stopping import Limits
from ..worlds import World

# Examples of each task that are evaluated, at least.
LEAST_EVALUATED = 64
# Steps that tell how large batches are, if they are by length.
MORE_STEPS = 9


@dataclass
class DryRun:
    """Outcome of ``dry_run``. Sizes in bytes.

    examples (Dict[str, Dict[str, Optional[int]]]): Task to split to how many there are;
        None where that is not known before all was read.
    n_parameters (int): Number of weights; 0 for an agent that has none.
    step_examples (int): Examples that the first step learns from.
    steps_per_epoch (Optional[int]): If all steps are like the first one, or, where batches
        are by length, like the first few.
    total_steps (Optional[int]): Of the whole run, by its limits of epochs and steps.
    loss (Optional[float]): Of the first step.
    memory (Dict[str, int]): What the run will hold: weights, gradients, optimizer, best
        weights, and the most that learning from the first batch took besides.
    dev (Dict[str, float]): Report on a small part of the dev data.
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
    overrides: Optional[Mapping[str, Any]] = None,
    force: bool = False,
    resume: bool = False,
    code: Union[str, Path, None] = None,
    stderr: Optional[TextIO] = None,
) -> DryRun:
    """Do all that ``train`` does up to its first step, and an evaluation on a small part
    of dev, with the baselines. Writes nothing, and does not set up loggers, which would.

    output (Union[str, Path, None]): The run's folder: only what it holds is looked at.
    force, resume (bool): As for ``train``.
    overrides (Optional[Mapping[str, Any]]): "section.key" to value.
    code (Union[str, Path, None]): Python file to import first.
    stderr (Optional[TextIO]): Where to show that texts are read; sys.stderr if None.
    RETURNS (DryRun): Counts, sizes, first loss.
    RAISES (DialogError): What ``train`` would raise.
    """
    load_code(code)
    checked = load_config(config, overrides or {})
    stream = stderr or sys.stderr
    ops = training_ops(checked)
    errors = numpy.errstate(over="ignore", invalid="ignore", divide="ignore")
    with using_ops(ops), errors:
        run = TrainingRun(checked, None, stream, stream, Interruption())
        if output is None:
            check_output(None, force, resume)
        else:
            check_contents(Path(output), force, resume, has_checkpoint=True)
        try:
            return _try(run, stream)
        except ConfigError as error:  # Found with the data, by parts that know no file.
            raise ConfigError(error.problems, checked.name) from error


def _try(run: TrainingRun, stream: TextIO) -> DryRun:
    found = DryRun(_count(run))
    with reading_bar(stream) as progress:
        run.agent.initialize(run.teacher, tokenizer=run.tokenizer, seed=run.seed, progress=progress)
    if isinstance(run.agent, ModelAgent):
        _take_step(run, run.agent, found)
    _evaluate(run, found)
    return found


def _count(run: TrainingRun) -> Dict[str, Dict[str, Optional[int]]]:
    counts: Dict[str, Dict[str, Optional[int]]] = {}
    for name, task in run.tasks.items():
        counts[name] = {split: task.for_split(split).n_examples for split in task.splits}
    return counts


def _take_step(run: TrainingRun, agent: ModelAgent, found: DryRun) -> None:
    """The first step of training, in memory only."""
    training, ops = run.training, agent.model.ops
    on_gpu = ops.device_type == "gpu"
    with run.make_world(run.teacher, agent) as world:
        world.start_epoch(0, run.seed)
        before = _begin_measuring(ops, on_gpu)
        examples = 0
        while not examples and not world.epoch_done():
            examples = gather_gradient(agent, world, run.seed, 1, training["accumulate_gradient"])
        peak = _end_measuring(ops, on_gpu) - before
        if not examples:
            raise DataError(run.teacher.data_name, "no training example has a label")
        found.loss = gathered_loss(agent)
        agent.update(training["optimizer"])
        per_step = float(examples)
        if getattr(getattr(world, "batcher", None), "needs_lengths", False):
            per_step = (examples + _more_steps(run, agent, world)) / (1 + MORE_STEPS)
    agent.reset_metrics()
    found.step_examples = examples
    found.n_parameters = agent.parameters.n_parameters
    if run.teacher.n_examples:
        found.steps_per_epoch = math.ceil(run.teacher.n_examples / per_step)
    limits = Limits(training["max_epochs"], training["max_steps"], training["max_seconds"])
    found.total_steps = limits.total_steps(found.steps_per_epoch)
    weights = int(agent.parameters.values.nbytes)
    n_workers = max(1, run.parts["hogwild"]["workers"])  # All have the same weights.
    found.memory = {
        "weights": weights,
        "gradients": int(agent.parameters.gradients.nbytes) * n_workers,
        "optimizer": _optimizer_bytes(training["optimizer"], weights),
        "best weights": weights,
        "batch": max(0, peak) * n_workers,
    }


def _more_steps(run: TrainingRun, agent: ModelAgent, world: World) -> int:
    """Examples of some more steps, because batches by length differ in size."""
    examples, n = 0, run.training["accumulate_gradient"]
    for step in range(2, 2 + MORE_STEPS):
        if world.epoch_done():
            world.start_epoch(step, run.seed)
        examples += gather_gradient(agent, world, run.seed, step, n)
        agent.update(run.training["optimizer"])
    return examples


def _begin_measuring(ops: Any, on_gpu: bool) -> int:
    if on_gpu:
        return int(ops.xp.get_default_memory_pool().total_bytes())
    tracemalloc.start()
    return tracemalloc.get_traced_memory()[0]


def _end_measuring(ops: Any, on_gpu: bool) -> int:
    if on_gpu:
        return int(ops.xp.get_default_memory_pool().total_bytes())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def _optimizer_bytes(optimizer: Any, weights: int) -> int:
    kept = [getattr(optimizer, name, None) or {} for name in ("mom1", "mom2")]
    size = sum(int(array.nbytes) for arrays in kept for array in arrays.values())
    # Averages begin with a later step, and have the weights' size.
    return size + (weights if getattr(optimizer, "averages", None) is not None else 0)


def _evaluate(run: TrainingRun, found: DryRun) -> None:
    """A part of dev and of test data: the score that is chosen by must be measured."""
    settings: Dict[str, Any] = run.parts["evaluation"]
    few = max(LEAST_EVALUATED, found.step_examples)
    settings["max_examples"] = min(settings["max_examples"] or few, few)
    teachers = {split: run.split(split) for split in ("dev", "test")}
    known = {split: teacher for split, teacher in teachers.items() if teacher is not None}
    for split, teacher in known.items():
        report = evaluate_agent(run.agent, teacher, settings["world"])
        if split == "dev":
            found.dev = report
            if isinstance(run.agent, ModelAgent):
                training = run.training
                score, direction = training["score"], training["score_direction"]
                Selection(score, direction, 0, None, has_dev=True).see(report, 0)
    run.measure_baselines(known)


def split_counts(found: DryRun) -> List[List[str]]:
    """Header and rows of a table: the examples of each task and split."""
    splits = list(dict.fromkeys(name for counts in found.examples.values() for name in counts))
    rows = [["examples", *splits]]
    for task, counts in found.examples.items():
        cells = ["-" if name not in counts else _number(counts[name]) for name in splits]
        rows.append([task, *cells])
    return rows


def _number(n: Optional[int]) -> str:
    return "not known" if n is None else f"{n:,}"
