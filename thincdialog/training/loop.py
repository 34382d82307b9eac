"""The training loop, which is the same for all worlds.

    while not stopped:
        steps of the runner: world.parley(), agent.update(optimizer)
        evaluate, stop, save and log according to the config

The ``Runner`` makes the steps, in this process or with several workers.

All randomness is a function of (seed, epoch) for the order of the data and of (seed, step,
microbatch) for the model, so a run with one worker is reproducible bit for bit. Between two steps,
``state`` is the complete state of the loop, from which another process can resume.
"""

import math
import time
from contextlib import nullcontext
from typing import Any, Callable, ContextManager, Dict, List, Mapping, Optional

from ..callbacks.callback import shall_end
from ..contract import is_users, place_of
from ..errors import DataError, ProtocolError, TrainingError
from ..loggers.logger import Log, Progress
from ..ops.device_memory import held_bytes
from ..ops.later import Number
from ..optimizers.scored_schedules import report_to_schedules
from ..optimizers.state import averages_of
from ..protocol import Learner, StepReport
from ..teachers import Teacher
from .experiment import Experiment
from .interruption import Interrupted, Interruption
from .keeper import Keeper
from .progress import Clock, Epochs, LogRows, Position
from .random_state import random_state, set_random_state
from .runner import Runner
from .selection import Selection
from .triggers import Every, TrainingLimits

UNITS = ("epochs", "steps", "seconds")


class TrainingLoop:
    """Train an agent with the settings of ``[training]``.

    experiment (Experiment): Holds the agent to train, its optimizer, and the runner, which makes
        the steps; the runner's ``begin`` has been called.
    train (Teacher): Teacher of the training data.
    dev (Optional[Teacher]): Teacher of the dev data; without dev data, the last weights are the
        best.
    log (Log): Called once for each step, and for the evaluation at step 0.
    keeper (Keeper): Saves models and checkpoints.
    interruption (Interruption): Receives signals.
    evaluated (Callable): Called with the scores of each evaluation.
    """

    # Attributes that a checkpoint holds, in addition to the objects that have their own state.
    _saved = ("learn_rate", "gradient_norm", "asked_to_stop", "_must_evaluate", "left_out")

    def __init__(
        self,
        experiment: Experiment,
        train: Teacher,
        dev: Optional[Teacher],
        log: Log,
        keeper: Keeper,
        interruption: Interruption,
        evaluated: Callable[[Mapping[str, float]], None],
    ):
        self.experiment, self.dev = experiment, dev
        self.runner: Runner = experiment.runner
        self.log, self.keeper, self.interruption = log, keeper, interruption
        self.evaluated = evaluated
        training = self.training = experiment.training
        self.limits = TrainingLimits.of(training)
        self.every = Every.evaluation(training)
        self.every_checkpoint = Every(0.0, *(training[f"checkpoint_every_{u}"] for u in UNITS[1:]))
        self.every_row = Every(0.0, training["log_every_steps"], 0.0)
        self._events = (self.every, self.every_checkpoint, self.every_row)
        self.position = Position()
        self.clock = Clock()
        self.epochs = Epochs(train)
        self.rows = LogRows(training["score"])
        # Rows between evaluations have separate sums, so that they do not affect the rows of
        # evaluations.
        self.loss_rows = LogRows(training["score"])
        self.selection = Selection(training, has_dev=dev is not None)
        self.learn_rate: Optional[float] = None
        self.gradient_norm: Optional[Number] = None
        # Skipped data by file. Checkpoints hold it, because a resumed run does not read all files
        # again.
        self.left_out: Dict[str, int] = {}
        self.truncated = 0.0  # Fraction of truncated contexts before the last evaluation.
        # Unlike a limit, this reason cannot be removed by changing the config before resuming.
        self.asked_to_stop = ""
        self.stopped_because = ""
        self._has_checkpoints = bool(
            training["checkpoint_evaluations"]
            or self.every_checkpoint.steps
            or self.every_checkpoint.seconds
        )
        self._must_evaluate = True
        self._must_save = self._has_checkpoints
        self._due_step = self._due_second = 0.0

    def run(self) -> str:
        """Train until a limit is reached.

        RETURNS (str): Reason why training ended, as a phrase for the user.
        RAISES (TrainingError): If a loss or gradient is not finite.
        RAISES (DataError): If the agent was trained on no example of the first epoch.
        RAISES (Interrupted): If a signal ended training; a checkpoint is written first.
        """
        with self.interruption.waiting():
            if self._must_save:  # Save before the first evaluation, which may take long.
                self._save()
            self._between_steps()
            while not self.stopped_because:
                self._make_steps()
        return self.stopped_because

    def _make_steps(self) -> None:
        """Make a step, or several steps if the runner has workers."""
        if not self.epochs.is_running:
            self.runner.start_epoch(self.epochs.number)
            self.epochs.begin(self.position)
            self._look_ahead()
        reports = self.runner.take(self.position.step, self._due_step - self.position.step)
        is_over = self.runner.epoch_done()
        self._count(reports, is_over)
        if is_over:
            self._count(self.runner.settle(), is_over)
            if not self.epochs.end(self.position):
                if not self.position.step:
                    raise nothing_learned(self.experiment.learner, self.epochs.teacher)
                self.asked_to_stop = "the agent found nothing to learn from in the last epoch"
        if is_over or self._may_be_due():
            self._between_steps()
        if self.every_row.step < self.position.step:
            self.log(self._progress, None)

    def _count(self, reports: List[StepReport], is_over: bool = False) -> None:
        """Count updates of the weights.

        is_over (bool): Whether the epoch is over.
        """
        for report in reports:
            self.position.step += 1
            self.position.examples += report.examples
            if self.epochs.count(report.examples):
                self._due_step = self.position.step  # Something may be due earlier than expected.
            self.rows.count(report)
            if self.every_row.steps:
                self.loss_rows.count(report)
            self.learn_rate, self.gradient_norm = report.learn_rate, report.gradient_norm
        if self.epochs.is_running:
            self.epochs.locate(self.position, is_over)

    def _look_ahead(self) -> None:
        """Find the step and the second of training before which nothing can be due."""
        room = self.epochs.steps_until(self.position, self._is_due)
        self._due_step = self.position.step + room
        seconds = (every.next_second() for every in self._events)
        self._due_second = min(self.limits.seconds or math.inf, *seconds)

    def _is_due(self, position: Position) -> bool:
        """Return whether something is due at a position, apart from seconds."""
        events = (every.due(position, 0.0) for every in self._events)
        return any(events) or self.limits.reached(position, 0.0) is not None

    def _may_be_due(self) -> bool:
        """Return whether an evaluation, a checkpoint or the end may be due now."""
        return (
            self.position.step >= self._due_step
            or self.interruption.received is not None
            or self.clock.seconds() >= self._due_second
        )

    def _progress(self) -> Progress:
        return Progress(
            step=self.position.step,
            epoch=self.position.epoch,
            examples=self.position.examples,
            loss=self.rows.mean_loss(),
            total_steps=self._total_steps(),
            workers=self.runner.status(),
        )

    def _total_steps(self) -> Optional[int]:
        return self.limits.total_steps(self.epochs.steps_per_epoch(self.position))

    def _between_steps(self) -> None:
        """Evaluate, stop and save, if each of them is due."""
        position, seconds = self.position, self.clock.seconds()
        self._must_evaluate |= self.every.due(position, seconds)
        self._must_save |= self.every_checkpoint.due(position, seconds)
        limit = self.limits.reached(position, seconds) if position.step else None
        is_asked = self.asked_to_stop or self.interruption.received is not None
        if self._must_evaluate or self._must_save or limit or is_asked:
            # Meanwhile, workers may reach the end of the epoch.
            self._count(self.runner.settle(), self.epochs.is_running and self.runner.epoch_done())
        self._evaluate_if_due()
        self.stopped_because = self.asked_to_stop or self.selection.reached() or limit or ""
        if self.stopped_because:
            self._must_evaluate |= self.every.step < position.step
            self._evaluate_if_due()
            self._must_save |= self._has_checkpoints and self.every_checkpoint.step < position.step
        if self.every_row.due(position, seconds) and not self._must_evaluate:
            self._log_row(self.loss_rows, {}, False, is_evaluation=False)
        if self.interruption.received is not None:
            self._save_and_end(self.interruption.received)
        if self._must_save:
            self._save()
        self._look_ahead()

    # --- evaluation ---------------------------------------------------------------

    def _evaluate_if_due(self) -> None:
        """Evaluate if an evaluation is due, unless a signal was received."""
        if not self._must_evaluate or self.interruption.received is not None:
            return
        drawn = random_state()
        try:
            self._evaluate()
        except Interrupted:
            if self.interruption.is_urgent:
                raise
            # The resumed run evaluates instead, with the same random draws.
            set_random_state(drawn)

    def _evaluate(self) -> None:
        """Evaluate with the averaged weights, if there are any; save the best weights; log."""
        seconds = self.clock.seconds()
        started = time.perf_counter()
        check_weights(self.experiment.learner, self.position.step)
        with self._averaged_weights():
            with self.interruption.waiting(False):
                if self.dev is not None and self.experiment.learner.needs_dev:
                    self.experiment.learner.tune(self.dev)
                dev = self.dev
                report = self.runner.evaluate(self.experiment, dev) if dev is not None else {}
            self.evaluated(report)
            is_best = self.selection.see(report, self.position.step)
            report_to_schedules(self.experiment.optimizer, is_best)
            self.keeper.evaluated(self.position, report, is_best)
        self.clock.leave_out(time.perf_counter() - started)
        self.every.done(self.position, seconds)
        self._must_evaluate = False
        self._must_save |= self.training["checkpoint_evaluations"]
        info = self._log_row(self.rows, report, is_best, is_evaluation=True)
        self.truncated = info["truncated_contexts"] or 0.0
        for callback in self.training["callbacks"]:
            if shall_end(callback, info, self.experiment.agent):
                self.asked_to_stop = self.asked_to_stop or "a callback asked to stop"

    def _log_row(
        self, rows: LogRows, report: Mapping[str, float], is_best: bool, is_evaluation: bool
    ) -> Dict[str, Any]:
        """Complete a row of the log, pass it to the loggers, and return it."""
        seconds = self.clock.seconds()
        rows.settle()  # Settle all numbers at once, so that an error names the first step.
        self.left_out = {**self.left_out, **self.experiment.left_out()}
        info = rows.make(
            self.position,
            seconds,
            report,
            is_best,
            is_evaluation=is_evaluation,
            learn_rate=self.learn_rate,
            gradient_norm=_float(self.gradient_norm),
            total_steps=self._total_steps(),
            **self._gpu_bytes(),
            **({"left_out": self.left_out} if self.left_out else {}),
        )
        if is_evaluation:
            self.loss_rows.begin(self.position, seconds)
        self.every_row.done(self.position, seconds)
        self.log(self._progress, info)
        return info

    def _gpu_bytes(self) -> Dict[str, int]:
        """Return the size of the memory pool on a GPU, if a GPU is used."""
        held = self.runner.gpu_bytes() or held_bytes(self.experiment.learner.weights)
        return {} if held is None else {"gpu_bytes": held}

    def _averaged_weights(self) -> ContextManager[None]:
        """Use the averaged weights, if there are any, in the block."""
        learner = self.experiment.learner
        averages = averages_of(self.experiment.optimizer, learner.weights)
        return nullcontext() if averages is None else learner.with_weights(averages)

    # --- checkpoints ----------------------------------------------------------------

    def _save(self) -> None:
        """Write a checkpoint. If the world cannot save its state, wait until the end of the
        epoch."""
        started = time.perf_counter()
        try:
            state = self.state()
        except ProtocolError:
            return
        self.keeper.checkpoint(self.position.step, state)
        self._must_save = False
        self.every_checkpoint.done(self.position, self.clock.seconds())
        self.clock.leave_out(time.perf_counter() - started)

    def _save_and_end(self, signal_number: int) -> None:
        """Write a checkpoint and the current model, and end training because of a signal.

        RAISES (Interrupted): Always.
        """
        self._save()
        if self.every.step < self.position.step:
            with self._averaged_weights():
                self.keeper.left(self.position)
        raise Interrupted(signal_number, self.keeper.newest)

    def state(self) -> Dict[str, Any]:
        """Return the state of the training, except the agent and the optimizer, as JSON values.

        RAISES (ProtocolError): If the world cannot be saved within an epoch.
        """
        return {
            "runner": self._runner_state(),
            "position": vars(self.position).copy(),
            "seconds": self.clock.seconds(),
            "parts": {name: part.state() for name, part in self._parts().items()},
            "callbacks": {name: part.state() for name, part in self._callbacks().items()},
            "more": {
                **{name: getattr(self, name) for name in self._saved},
                "gradient_norm": _float(self.gradient_norm),
            },
            "logged_step": self.every_row.step,
            "random": random_state(),
        }

    def _parts(self) -> Dict[str, Any]:
        parts = {"epochs": self.epochs, "rows": self.rows, "selection": self.selection}
        return {**parts, "every": self.every, "loss_rows": self.loss_rows, "log": self.every_row}

    def _callbacks(self) -> Dict[str, Any]:
        """Return the callbacks with a state, by their names in the config."""
        names = self.experiment.checked.interpolated["training"].get("callbacks", {})
        known = zip(names, self.training["callbacks"])
        return {name: callback for name, callback in known if hasattr(callback, "state")}

    def _runner_state(self) -> Optional[Dict[str, Any]]:
        try:
            return self.runner.state()
        except ProtocolError:
            if self.epochs.is_running:
                raise
            return None

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state from ``state``. The agent and the optimizer must be restored already."""
        if state["runner"] is not None:
            self.runner.restore(state["runner"])
        self.position = Position(**state["position"])
        self.clock.start_at(state["seconds"])
        for name, part in self._parts().items():
            part.restore(state["parts"][name])
        for name, callback in self._callbacks().items():
            if name in state["callbacks"] and hasattr(callback, "restore"):
                callback.restore(state["callbacks"][name])
        for name in self._saved:
            setattr(self, name, state["more"][name])
        self._must_save = False
        self.every_checkpoint.done(self.position, state["seconds"])
        set_random_state(state["random"])


def _float(number: Optional[Number]) -> Optional[float]:
    return None if number is None else float(number)


def check_weights(agent: Learner, step: int) -> None:
    """Check that the weights are finite. (If the agent reports its loss, that shows the problem
    earlier.)

    step (int): Number of steps so far.
    RAISES (TrainingError): If the weights are not finite.
    """
    if math.isfinite(float(agent.weights.sum(dtype="d"))):
        return
    own = type(agent).update
    where = f"{place_of(own)}: " if is_users(own) else ""
    raise TrainingError(
        f"{where}after step {step}, the weights are not finite: try a lower learn_rate"
    )


def nothing_learned(agent: Learner, train: Teacher) -> DataError:
    """Make the error for an agent that was trained on no example of an epoch. It names the custom
    method that may be the cause."""
    methods = [type(agent).observe, getattr(type(agent), "read", type(agent).learn)]
    places = " or ".join(map(place_of, filter(is_users, methods))) or f"[agent] {agent.id}"
    text = f"{places} found nothing to learn from in any training example"
    if next(train.all_labels(), None) is None:
        text = "no training example has a label"
    return DataError(train.order.origin, text)
