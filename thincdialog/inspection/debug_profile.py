"""Measure the time of training by part: each layer, the data, the optimizer, evaluation."""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, TextIO

from ..config import ConfigLike
from ..errors import DialogError
from ..evaluation.evaluate_agent import evaluate_agent
from ..models.node_names import node_names
from ..training.experiment import CodeLike, Overrides
from .stopwatch import Spent, Stopwatch
from .trial import Trial, prepared

DATA, TEXT, LOSS, OPTIMIZER = "(data and world)", "(text to arrays)", "(loss)", "(optimizer)"
PARTS = (DATA, TEXT, LOSS, OPTIMIZER)
# On a GPU, the rest of its work after the host has started all of a step.
GPU = "(wait for the GPU)"
ENCODING = ("contexts", "labels", "pairs", "pack", "context_lengths", "label_lengths")
# Number of steps before the measurement, which fill caches and allocate memory.
WARM_UP = 3
# Maximum number of examples of each task to evaluate.
MAX_EVALUATED = 1000


@dataclass
class PartTime:
    """Hold the time of a layer, or of another part of a step, in milliseconds per step.

    name (str): Name of the layer; names of other parts are in parentheses.
    calls (float): Number of forward passes per step.
    forward (float): Time of forward passes, without inner layers.
    backward (float): Time of backward passes, without inner layers.
    own (float): Sum of ``forward`` and ``backward``.
    total (float): Time including inner layers.
    share (float): ``own`` as a fraction of the whole step; the fractions of all parts add up to 1.
    """

    name: str
    calls: float
    forward: float
    backward: float
    own: float
    total: float
    share: float


@dataclass
class Profile:
    """Hold the result of ``debug_profile()``.

    is_on_gpu (bool): Whether the model is on a GPU. All times are then times of the host, which
        waits for the GPU at the end of each step: see ``GPU``.
    parts (List[PartTime]): Parts of a step, the slowest first.
    steps (int): Number of measured steps.
    examples_per_step (float): Mean number of examples in a step.
    step_ms (float): Milliseconds per step with measurement.
    plain_ms (float): Milliseconds per step without measurement.
    eval_ms_per_example (Optional[float]): Milliseconds per example of an evaluation; None without
        dev data.
    eval_examples (Optional[int]): Number of examples of a whole evaluation, if known.
    eval_share (Optional[float]): Fraction of a run's time that evaluations take with the config's
        settings, if known.
    """

    is_on_gpu: bool
    parts: List[PartTime]
    steps: int
    examples_per_step: float
    step_ms: float
    plain_ms: float
    eval_ms_per_example: Optional[float] = None
    eval_examples: Optional[int] = None
    eval_share: Optional[float] = None

    @property
    def overhead(self) -> float:
        """Overhead of measuring, as a fraction of a step without it. Noise can make it negative."""
        return self.step_ms / self.plain_ms - 1


def debug_profile(
    config: ConfigLike,
    *,
    steps: int = 50,
    overrides: Overrides = None,
    code: CodeLike = None,
    stderr: Optional[TextIO] = None,
) -> Profile:
    """Train for some steps, and report the time of each part. The same number of steps is run
    without measuring, to find the overhead. Steps are the same as in training; no files are
    written.

    config (ConfigLike): Path of a config, its text, a Config, or a dict of its sections.
    steps (int): Number of steps to measure, 1 or more.
    overrides (Optional[Mapping[str, Any]]): "section.key" to value.
    code (CodeLike): Python file or files to import first.
    stderr (Optional[TextIO]): Stream for progress; sys.stderr if None.
    RETURNS (Profile): Times of layers and other parts.
    RAISES (DialogError): If the config or the data cannot be used, or ``steps`` is below 1.
    """
    if steps < 1:
        raise DialogError(f"steps = {steps}, expected 1 or more")
    with prepared(config, overrides, code, stderr) as trial:
        profile = measure(trial, steps)
        _evaluate(trial, profile)
    return profile


def measure(trial: Trial, steps: int) -> Profile:
    """Make training steps, every second of which is measured.

    trial (Trial): The experiment.
    steps (int): Number of steps with and without measurement each, after some warm-up steps.
    RETURNS (Profile): The profile, without evaluation.
    """
    gathered = trial.steps()
    for _ in range(WARM_UP):
        _step(trial, gathered, None)
    stopwatch = Stopwatch()
    seconds = {True: 0.0, False: 0.0}
    examples = 0
    for number in range(2 * steps):
        is_measured = number % 2 == 1
        started = time.perf_counter()
        n_examples = _step(trial, gathered, stopwatch if is_measured else None)
        examples += n_examples * is_measured
        seconds[is_measured] += time.perf_counter() - started
    gathered.close()
    per_step = 1000 / steps
    return Profile(
        is_on_gpu=_is_on_gpu(trial),
        parts=_parts(trial, stopwatch.spent, per_step),
        steps=steps,
        examples_per_step=examples / steps,
        step_ms=seconds[True] * per_step,
        plain_ms=seconds[False] * per_step,
    )


def _step(trial: Trial, gathered: Iterator[bool], stopwatch: Optional[Stopwatch]) -> int:
    """Make a step, and return its number of examples. A stopwatch measures its parts."""
    agent: Any = trial.agent
    with ExitStack() as stack:
        if stopwatch is not None:
            stack.enter_context(stopwatch.timing_nodes(trial.model, node_names(trial.model)))
            stack.enter_context(stopwatch.timing_method(agent, "learn", LOSS))
            for method in ENCODING if agent.needs_text else ():
                stack.enter_context(stopwatch.timing_method(agent.text, method, TEXT))
        timed = (lambda name, do, *given: do(*given)) if stopwatch is None else stopwatch.time
        timed(DATA, next, gathered)
        examples: int = agent.n_gathered
        timed(OPTIMIZER, agent.update, trial.optimizer)
        if _is_on_gpu(trial):
            timed(GPU, _wait_for_gpu, trial)
    return examples


def _is_on_gpu(trial: Trial) -> bool:
    return bool(trial.model.ops.device_type == "gpu")


def _wait_for_gpu(trial: Trial) -> None:
    trial.model.ops.xp.cuda.get_current_stream().synchronize()


def _parts(trial: Trial, spent: Dict[str, Spent], per_step: float) -> List[PartTime]:
    whole = sum(found.own for found in spent.values()) or 1.0
    parts = []
    # Nodes that are run together share a name.
    others = [name for name in spent if not name.endswith(" backward")]
    for name in dict.fromkeys([*node_names(trial.model), *PARTS, *others]):
        there, back = spent.get(name, Spent()), spent.get(f"{name} backward", Spent())
        own = there.own + back.own
        parts.append(
            PartTime(
                name=name,
                calls=there.calls * per_step / 1000,
                forward=there.own * per_step,
                backward=back.own * per_step,
                own=own * per_step,
                total=(there.total + back.total) * per_step,
                share=own / whole,
            )
        )
    return sorted(parts, key=lambda part: -part.own)


def _evaluate(trial: Trial, profile: Profile) -> None:
    """Add the time of an evaluation on the dev data."""
    training = trial.training
    if not trial.has_split("dev"):
        return
    whole = trial.evaluation_split("dev")
    limit = trial.evaluation["max_examples"] or MAX_EVALUATED
    some = trial.evaluation_split("dev", max_examples=min(limit, MAX_EVALUATED))
    started = time.perf_counter()
    report = evaluate_agent(trial.agent, some, trial.make_evaluation_world)
    milliseconds = (time.perf_counter() - started) * 1000
    if not report.get("examples"):
        return
    profile.eval_ms_per_example = milliseconds / report["examples"]
    profile.eval_examples = whole.n_examples
    between = training["eval_every_steps"]
    if not between and trial.teacher.n_examples:
        steps_per_epoch = trial.teacher.n_examples / profile.examples_per_step
        between = training["eval_every_epochs"] * steps_per_epoch
    if between and whole.n_examples:
        evaluating = profile.eval_ms_per_example * whole.n_examples
        profile.eval_share = evaluating / (evaluating + between * profile.plain_ms)
