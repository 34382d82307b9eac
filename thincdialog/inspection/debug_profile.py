"""Where the time of training goes: each layer, the data, the optimizer, evaluation."""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, TextIO

from ..config import ConfigLike
from ..errors import DialogError
from ..evaluation.evaluate_agent import evaluate_agent
from ..models.node_names import node_names
from ..training.experiment import CodeLike, Overrides
from .stopwatch import Spent, Stopwatch
from .trial import Trial, prepared

DATA, TEXT, LOSS, OPTIMIZER = "(data and world)", "(text to arrays)", "(loss)", "(optimizer)"
PARTS = (DATA, TEXT, LOSS, OPTIMIZER)
ENCODING = ("contexts", "labels", "pairs", "pack", "context_lengths", "label_lengths")
# Steps before any is counted: caches are filled, memory is taken.
WARM_UP = 3
# Examples of each task that are evaluated, at most.
MAX_EVALUATED = 1000


@dataclass
class PartTime:
    """Time of a layer, or of a part of a step that is no layer. All in milliseconds a step.

    name (str): The layer's, or the part's in parentheses.
    calls (float): Forward passes a step.
    forward (float): Without that of layers inside.
    backward (float): Likewise.
    own (float): Both together.
    total (float): With the layers inside.
    share (float): Of the whole step, by ``own``: those of all parts add up to 1.
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
    """Outcome of ``debug_profile``.

    parts (List[PartTime]): Those that take most time first.
    steps (int): Measured.
    examples_per_step (float): On average.
    step_ms (float): Milliseconds a step while measuring.
    plain_ms (float): The same without.
    eval_ms_per_example (Optional[float]): Of an evaluation; None without dev data.
    eval_examples (Optional[int]): Of a whole evaluation, if known.
    eval_share (Optional[float]): Of a run's time, as often as the config evaluates, if known.
    """

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
        """What measuring adds, as a share of a step without it; below 0 by noise."""
        return self.step_ms / self.plain_ms - 1


def debug_profile(
    config: ConfigLike,
    *,
    steps: int = 50,
    overrides: Overrides = None,
    code: CodeLike = None,
    stderr: Optional[TextIO] = None,
) -> Profile:
    """Train for some steps and tell where the time goes. Every second step is run without
    measuring, to see what measuring costs. Steps are those of training; writes nothing.

    steps (int): Steps to measure, 1 or more; as many more are not measured.
    overrides (Optional[Mapping[str, Any]]): "section.key" to value.
    code (CodeLike): Python file to import first, or several.
    stderr (Optional[TextIO]): Where to show that texts are read; sys.stderr if None.
    RETURNS (Profile): Times of layers and other parts.
    RAISES (DialogError): If config or data cannot be used, or ``steps`` is below 1.
    """
    if steps < 1:
        raise DialogError(f"steps = {steps}: it takes one step at least")
    with prepared(config, overrides, code, stderr) as trial:
        profile = measure(trial, steps)
        _evaluate(trial, profile)
    return profile


def measure(trial: Trial, steps: int) -> Profile:
    """Take steps of training, every second of which is measured.

    steps (int): So many of each kind, after some that do not count.
    RETURNS (Profile): Without evaluation.
    """
    wait: Optional[Callable[[], None]] = None
    if trial.model.ops.device_type == "gpu":
        # It works on while Python goes on: each time is taken when it is done.
        wait = trial.model.ops.xp.cuda.get_current_stream().synchronize
    stopwatch = Stopwatch(wait)
    gathered = trial.steps()
    seconds = {True: 0.0, False: 0.0}
    examples = 0
    for number in range(-WARM_UP, 2 * steps):
        is_measured = number >= 0 and number % 2 == 1
        started = time.perf_counter()
        if is_measured:
            examples += _measured_step(trial, gathered, stopwatch)
        else:
            next(gathered)
            trial.agent.update(trial.optimizer)
        if wait is not None:
            wait()
        if number >= 0:
            seconds[is_measured] += time.perf_counter() - started
    gathered.close()  # type: ignore[attr-defined]
    per_step = 1000 / steps
    return Profile(
        parts=_parts(trial, stopwatch.spent, per_step),
        steps=steps,
        examples_per_step=examples / steps,
        step_ms=seconds[True] * per_step,
        plain_ms=seconds[False] * per_step,
    )


def _measured_step(trial: Trial, gathered: Iterator[bool], stopwatch: Stopwatch) -> int:
    agent: Any = trial.agent
    with ExitStack() as stack:
        stack.enter_context(stopwatch.timing_nodes(trial.model, node_names(trial.model)))
        stack.enter_context(stopwatch.timing_method(agent, "learn", LOSS))
        for method in ENCODING if agent.needs_text else ():
            stack.enter_context(stopwatch.timing_method(agent.text, method, TEXT))
        stopwatch.time(DATA, next, gathered)
        examples: int = agent.n_gathered
        stopwatch.time(OPTIMIZER, agent.update, trial.optimizer)
    return examples


def _parts(trial: Trial, spent: Dict[str, Spent], per_step: float) -> List[PartTime]:
    whole = sum(found.own for found in spent.values()) or 1.0
    parts = []
    for name in [*node_names(trial.model), *PARTS]:
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
    """Add what an evaluation on dev costs."""
    training = trial.training
    if not trial.has_split("dev"):
        return
    whole = trial.evaluation_split("dev")
    limit = trial.evaluation["max_examples"] or MAX_EVALUATED
    some = trial.evaluation_split("dev", max_examples=min(limit, MAX_EVALUATED))
    started = time.perf_counter()
    report = evaluate_agent(trial.agent, some, trial.evaluation["world"])
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
