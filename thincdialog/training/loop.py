"""The training loop: one for all worlds.

    while not stopped:
        steps of the runner: world.parley(), agent.update(optimizer)
        evaluate, stop, save, log as the config says

Who makes the steps is the ``Runner``: this process, or many workers.

Everything random is a function of (seed, epoch) for the order of the data and of
(seed, step, microbatch) for the model, so a run of one worker can be repeated to the bit.
Between two steps, ``state`` is all that the loop knows: another process goes on from there.
"""

import time
from contextlib import nullcontext
from typing import Any, ContextManager, Dict, List, Mapping, Optional

from ..errors import ProtocolError
from ..loggers.logger import Log, Progress
from ..optimizers.state import averages_of
from ..protocol import Learner, StepReport
from ..teachers import Teacher
from .interruption import Interrupted, Interruption
from .keeper import Keeper
from .log_rows import LogRows
from .loop_settings import LoopSettings
from .progress import Clock, Epochs, Position
from .random_state import random_state, set_random_state
from .runner import Runner
from .selection import Selection


class TrainingLoop:
    """Trains one agent.

    agent (Learner): Whose weights are kept.
    train (Teacher): Of the training data; knows its size, if it is held in memory.
    dev (Optional[Teacher]): Of the data to evaluate on; without it nothing is compared, and
        the last weights are the best.
    runner (Runner): Makes the steps; it has begun.
    log (Log): Told once of each step, and of the evaluation at step 0.
    keeper (Keeper): Saves models and checkpoints.
    interruption (Interruption): Receives signals.
    """

    def __init__(
        self,
        agent: Learner,
        train: Teacher,
        dev: Optional[Teacher],
        runner: Runner,
        settings: LoopSettings,
        log: Log,
        keeper: Keeper,
        interruption: Interruption,
    ):
        self.agent, self.runner, self.dev = agent, runner, dev
        self.settings, self.log = settings, log
        self.keeper, self.interruption = keeper, interruption
        self.position = Position()
        self.clock = Clock()
        self.epochs = Epochs(train)
        self.rows = LogRows(settings.score)
        self.selection = Selection(
            settings.score,
            settings.score_direction,
            settings.patience,
            settings.target_score,
            has_dev=dev is not None,
        )
        self.learn_rate: Optional[float] = None
        self.gradient_norm: Optional[float] = None
        self.asked_to_stop = ""  # Unlike limits, nothing in the config can change it.
        self.stopped_because = ""
        self._evaluated_step = self._saved_step = -1
        self._must_evaluate = True
        self._must_save = settings.has_checkpoints
        self._due_step = self._due_second = 0.0

    def run(self) -> str:
        """Train until a limit is reached.

        RETURNS (str): Why it ended, as a phrase for the user.
        RAISES (TrainingError): If a loss or gradient is not finite.
        RAISES (Interrupted): If a signal ended it; a checkpoint is written before.
        """
        with self.interruption.waiting():
            self._run()
        return self.stopped_because

    def _run(self) -> None:
        if self._must_save:  # Before anything else: the first evaluation may be long.
            self._save()
        self._between_steps()
        while not self.stopped_because:
            if not self.epochs.is_running:
                self.runner.start_epoch(self.epochs.number)
                self.epochs.begin(self.position)
                self._look_ahead()
            is_over = self.runner.epoch_done()
            if not is_over:
                room = self._due_step - self.position.step
                reports = self.runner.take(self.position.step, room)
                is_over = self.runner.epoch_done()
                self._count(reports, is_over)
            if is_over:
                self._count(self.runner.settle(), is_over)
                if not self.epochs.end(self.position):
                    self.asked_to_stop = "no training example had a label"
            if is_over or self._may_be_due():
                self._between_steps()
            if self._evaluated_step < self.position.step:
                self.log(self._progress(), None)

    def _count(self, reports: List[StepReport], is_over: bool = False) -> None:
        """Updates of the weights were made.

        is_over (bool): Whether the epoch is.
        """
        for report in reports:
            self.position.step += 1
            self.position.examples += report.examples
            if self.epochs.count(report.examples):
                self._due_step = self.position.step  # What was foreseen may come earlier.
            self.rows.count(report)
            self.learn_rate, self.gradient_norm = report.learn_rate, report.gradient_norm
        if self.epochs.is_running:
            self.epochs.locate(self.position, is_over)

    def _look_ahead(self) -> None:
        """Foresee the step and the second of training before which nothing can be due."""
        position, settings = self.position, self.settings
        limits = (settings.limits, settings.every, settings.every_checkpoint)
        epochs = min(limit.epochs_left(position) for limit in limits)
        steps = min(limit.steps_left(position) for limit in limits)
        self._due_step = position.step + min(steps, self.epochs.steps_left(position, epochs))
        self._due_second = min(limit.next_second() for limit in limits)

    def _may_be_due(self) -> bool:
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
            loss_per_example=self.rows.loss(),
            total_steps=self._total_steps(),
        )

    def _total_steps(self) -> Optional[int]:
        return self.settings.limits.total_steps(self.epochs.steps_per_epoch(self.position))

    def _between_steps(self) -> None:
        """Evaluate, stop, save, as far as each is due."""
        settings, position, seconds = self.settings, self.position, self.clock.seconds()
        self._must_evaluate |= settings.every.due(position, seconds)
        self._must_save |= settings.every_checkpoint.due(position, seconds)
        limit = settings.limits.reached(position, seconds) if position.step else None
        is_asked = self.asked_to_stop or self.interruption.received is not None
        if self._must_evaluate or self._must_save or limit or is_asked:
            # Workers may come to the end of the epoch meanwhile.
            self._count(self.runner.settle(), self.epochs.is_running and self.runner.epoch_done())
        self._evaluate_if_due()
        self.stopped_because = self.asked_to_stop or self.selection.reached() or limit or ""
        if self.stopped_because:
            self._must_evaluate |= self._evaluated_step < position.step
            self._evaluate_if_due()
            self._must_save |= settings.has_checkpoints and self._saved_step < position.step
        if self.interruption.received is not None:
            self._leave(self.interruption.received)
        if self._must_save:
            self._save()
        self._look_ahead()

    # --- evaluation ---------------------------------------------------------------

    def _evaluate_if_due(self) -> None:
        if not self._must_evaluate or self.interruption.received is not None:
            return
        drawn = random_state()
        try:
            self._evaluate()
        except Interrupted:
            if self.interruption.is_urgent:
                raise
            # It is left for when the run goes on, with the same draws.
            set_random_state(drawn)

    def _evaluate(self) -> None:
        """Evaluate with the averaged weights, if any; keep the best; log."""
        seconds = self.clock.seconds()
        started = time.perf_counter()
        with self._weights_to_keep():
            with self.interruption.waiting(False):
                report = self.runner.evaluate(self.dev) if self.dev is not None else {}
            is_best = self.selection.see(report, self.position.step)
            self.keeper.evaluated(self.position, report, is_best)
        self.clock.leave_out(time.perf_counter() - started)
        self.settings.every.done(self.position, seconds)
        self._evaluated_step = self.position.step
        self._must_evaluate = False
        self._must_save |= self.settings.checkpoint_evaluations
        info = self.rows.make(
            self.position,
            seconds,
            report,
            is_best,
            learn_rate=self.learn_rate,
            gradient_norm=self.gradient_norm,
            total_steps=self._total_steps(),
        )
        self.log(self._progress(), info)
        for callback in self.settings.callbacks.values():
            if callback(info, self.agent):
                self.asked_to_stop = self.asked_to_stop or "a callback asked to stop"

    def _weights_to_keep(self) -> ContextManager[None]:
        """The averaged weights in their place, if there are any."""
        averages = averages_of(self.settings.optimizer)
        return nullcontext() if averages is None else self.agent.with_weights(averages)

    # --- going on in another process ------------------------------------------------

    def _save(self) -> None:
        """Write a checkpoint; in a world without a ``state``, at the end of the epoch."""
        started = time.perf_counter()
        try:
            state = self.state()
        except ProtocolError:
            return
        self.keeper.checkpoint(self.position.step, state)
        self._must_save, self._saved_step = False, self.position.step
        self.settings.every_checkpoint.done(self.position, self.clock.seconds())
        self.clock.leave_out(time.perf_counter() - started)

    def _leave(self, signal_number: int) -> None:
        self._save()
        if self._evaluated_step < self.position.step:
            with self._weights_to_keep():
                self.keeper.left(self.position)
        raise Interrupted(signal_number, self.keeper.newest)

    def state(self) -> Dict[str, Any]:
        """All that decides on what comes next but for agent and optimizer, as JSON values.

        RAISES (ProtocolError): If the world cannot be saved within an epoch.
        """
        return {
            "runner": self._runner_state(),
            "position": vars(self.position).copy(),
            "seconds": self.clock.seconds(),
            "epochs": self.epochs.state(),
            "rows": self.rows.state(),
            "best": self.selection.state(),
            "every": self.settings.every.state(),
            "learn_rate": self.learn_rate,
            "gradient_norm": self.gradient_norm,
            "asked_to_stop": self.asked_to_stop,
            "evaluated_step": self._evaluated_step,
            "must_evaluate": self._must_evaluate,
            "callbacks": {
                name: callback.state()
                for name, callback in self.settings.callbacks.items()
                if hasattr(callback, "state")
            },
            "random": random_state(),
        }

    def _runner_state(self) -> Optional[Dict[str, Any]]:
        try:
            return self.runner.state()
        except ProtocolError:
            if self.epochs.is_running:
                raise
            return None

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to where ``state`` was taken; agent and optimizer are there already."""
        if state["runner"] is not None:
            self.runner.restore(state["runner"])
        self.position = Position(**state["position"])
        self.clock.start_at(state["seconds"])
        self.epochs.restore(state["epochs"])
        self.rows.restore(state["rows"])
        self.selection.restore(state["best"])
        self.settings.every.restore(state["every"])
        self.settings.every_checkpoint.done(self.position, state["seconds"])
        self.learn_rate, self.gradient_norm = state["learn_rate"], state["gradient_norm"]
        self.asked_to_stop = state["asked_to_stop"]
        self._evaluated_step, self._saved_step = state["evaluated_step"], self.position.step
        self._must_evaluate, self._must_save = state["must_evaluate"], False
        for name, callback in self.settings.callbacks.items():
            if name in state["callbacks"] and hasattr(callback, "restore"):
                callback.restore(state["callbacks"][name])
        set_random_state(state["random"])
