"""The training loop: one for all worlds.

    while not world.epoch_done():
        world.parley()          the agent adds a gradient
        agent.update(optimizer)
        evaluate, save, log, stop as the config says

Everything random is a function of (seed, epoch) for the order of the data and of
(seed, step, microbatch) for the model, so a run can be repeated to the bit.
"""

import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional

import numpy

from ..agents.model_agent import ModelAgent
from ..callbacks import Callback
from ..errors import ConfigError, Problem
from ..loggers.logger import Logger, Progress
from ..metrics import higher_is_better, report_values
from ..models.averages import averaged_weights
from ..teachers import Teacher
from ..worlds import World
from .gradients import GradientTree
from .stopping import Best, Clock, Every, Limits, Position

# The most of an epoch that can be done while it is not.
ALMOST = 0.999


@dataclass
class LoopSettings:
    """``[training]`` as the loop reads it; all limits: 0 = none.

    seed (int): Of the order of the data and of dropout.
    optimizer (Optimizer): Thinc's, or one that is called like it.
    score (str): Name of the dev metric to optimise.
    score_direction (str): "max", "min", or "auto" to tell from the metric's name.
    accumulate_gradient (int): Microbatches (parleys) for one update of the weights.
    """

    seed: int
    optimizer: Any
    limits: Limits
    every: Every
    score: str
    score_direction: str = "auto"
    patience: int = 0
    target_score: Optional[float] = None
    accumulate_gradient: int = 1
    callbacks: List[Callback] = field(default_factory=list)


class TrainingLoop:
    """Trains one agent in one world.

    world (World): Of the training teacher and the agent.
    evaluate (Optional[Callable]): Gives the dev report (metric name to value); None
        without dev data: then nothing is compared, and the last weights are the best.
    save (Callable): Called after every evaluation, while the evaluated weights are
        in place, with position, report, and whether it is the best so far.
    """

    def __init__(
        self,
        agent: ModelAgent,
        teacher: Teacher,
        world: World,
        settings: LoopSettings,
        logger: Logger,
        evaluate: Optional[Callable[[], Dict[str, float]]],
        save: Callable[[Position, Mapping[str, float], bool], None],
    ):
        self.agent, self.teacher, self.world = agent, teacher, world
        self.settings, self.logger = settings, logger
        self.evaluate, self.save = evaluate, save
        self.position = Position()
        self.clock = Clock()
        self.best: Optional[Best] = None
        self.learn_rate: Optional[float] = None
        self.gradient_norm: Optional[float] = None
        self.stopped_because = ""
        self._examples_of_an_epoch: Optional[int] = None
        self._examples_at_row = 0
        self._seconds_at_row = 0.0
        self._evaluated_step = -1

    def run(self) -> str:
        """Train until a limit is reached.

        RETURNS (str): Why it ended, as a phrase for the user.
        RAISES (TrainingError): If a loss or gradient is not finite.
        """
        # Overflow ends in an error that names the examples; NumPy's warning would only
        # come before it.
        with numpy.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self._run()
        return self.stopped_because

    def _run(self) -> None:
        settings, position = self.settings, self.position
        self._evaluate()
        epoch = 0
        while not self.stopped_because:
            self.world.start_epoch(epoch, settings.seed)
            before = position.examples
            while not self.world.epoch_done() and not self.stopped_because:
                position.examples += self._step()
                self._locate(epoch, position.examples - before)
                self.logger.step(self._progress())
                if settings.every.due(position, self.clock.seconds()):
                    self._evaluate()
                self._stop_at_limits()
            if self.world.epoch_done():
                self._examples_of_an_epoch = position.examples - before
            if position.examples == before:
                self.stopped_because = "no training example had a label"
            epoch += 1
        if self._evaluated_step < position.step:
            self._evaluate()

    def _step(self) -> int:
        """One update of the weights; returns how many examples it learnt from."""
        settings, agent = self.settings, self.agent
        step = self.position.step + 1
        tree = GradientTree() if settings.accumulate_gradient > 1 else None
        microbatch = 0
        while microbatch < settings.accumulate_gradient and not self.world.epoch_done():
            agent.seed(settings.seed, step, microbatch)
            self.world.parley()
            microbatch += 1
            if tree is not None:
                tree.add(agent.parameters.gradients)
                agent.parameters.clear_gradients()
        examples = agent.counters.examples
        if examples:
            if tree is not None:
                tree.take(agent.parameters.gradients)
            self.learn_rate = float(settings.optimizer.learn_rate)
            self.gradient_norm = agent.update(settings.optimizer)
            self.position.step = step
        return examples

    def _locate(self, epoch: int, examples_in_epoch: int) -> None:
        if self.world.epoch_done():
            self.position.epoch = epoch + 1.0
        else:
            total = self._n_examples()
            share = examples_in_epoch / total if total else 0.0
            # A task that is shown again makes an epoch longer than the data.
            self.position.epoch = epoch + min(ALMOST, share)

    def _stop_at_limits(self) -> None:
        limit = self.settings.limits.reached(self.position, self.clock.seconds())
        self.stopped_because = self.stopped_because or limit or ""

    def _progress(self) -> Progress:
        position = self.position
        return Progress(
            step=position.step,
            epoch=position.epoch,
            examples=position.examples,
            loss_per_example=self.agent.counters.loss.value(),
            total_steps=self.settings.limits.total_steps(self.steps_per_epoch()),
        )

    # --- evaluation ---------------------------------------------------------------

    def _evaluate(self) -> None:
        """Evaluate with the averaged weights, if any; log; keep the best; maybe stop."""
        seconds = self.clock.seconds()
        training = report_values(self.agent.report())
        started = time.perf_counter()
        self._evaluated_step = self.position.step
        with averaged_weights(self.agent.parameters, self.settings.optimizer) as changed:
            if changed:
                self.agent.forget_computed()
            report = self.evaluate() if self.evaluate is not None else {}
            is_best = self._see(report)
            self.save(self.position, report, is_best)
        if changed:
            self.agent.forget_computed()
        self.agent.reset_metrics()
        self.clock.leave_out(time.perf_counter() - started)
        self.settings.every.done(self.position, seconds)
        info = self._row(report, training, seconds, is_best)
        self.logger.row(info)
        for callback in self.settings.callbacks:
            if callback(info, self.agent):
                self.stopped_because = self.stopped_because or "a callback asked to stop"
        if self.best is not None:
            self.stopped_because = self.stopped_because or self.best.reached() or ""

    def _see(self, report: Mapping[str, float]) -> bool:
        """Compare a dev report with the best; without dev data every one is the best."""
        settings = self.settings
        if self.evaluate is None:
            return True
        if settings.score not in report:
            known = ", ".join(sorted(report))
            text = f"[training] score = '{settings.score}' is not measured on the dev data"
            raise ConfigError([Problem("", text, f"choose one of: {known}")], "config")
        if self.best is None:
            better = {"max": True, "min": False}.get(settings.score_direction)
            better = higher_is_better(settings.score) if better is None else better
            if better is None:
                text = f"[training] score = '{settings.score}': higher or lower better?"
                hint = 'set score_direction to "max" or "min"'
                raise ConfigError([Problem("", text, hint)], "config")
            self.best = Best(better, settings.patience, settings.target_score)
        return self.best.see(report[settings.score], self.position.step, report)

    def _row(
        self,
        report: Mapping[str, float],
        training: Mapping[str, float],
        seconds: float,
        is_best: bool,
    ) -> Dict[str, Any]:
        examples = self.position.examples - self._examples_at_row
        spent = seconds - self._seconds_at_row
        self._examples_at_row, self._seconds_at_row = self.position.examples, seconds
        return {
            "step": self.position.step,
            "epoch": self.position.epoch,
            "examples": self.position.examples,
            "loss_per_example": training.get("loss"),
            "score_name": self.settings.score,
            "score": report.get(self.settings.score),
            "scores": dict(report),
            "is_best": is_best,
            "learn_rate": self.learn_rate,
            "gradient_norm": self.gradient_norm,
            "examples_per_second": examples / spent if examples else None,
            "tokens_per_second": training.get("tokens", 0.0) / spent if examples else None,
            "padding_fraction": training.get("padding_fraction"),
            "truncated_contexts": training.get("truncated_contexts"),
            "seconds": seconds,
            "total_steps": self.settings.limits.total_steps(self.steps_per_epoch()),
        }

    def steps_per_epoch(self) -> Optional[float]:
        """Measured so far; None before the first step."""
        position, total = self.position, self._n_examples()
        if not position.examples or not total:
            return None
        return position.step * total / position.examples

    def _n_examples(self) -> Optional[int]:
        """Learnt from in an epoch, as far as is known; exactly after the first one."""
        return self._examples_of_an_epoch or self.teacher.n_examples
