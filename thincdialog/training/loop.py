"""The training loop: one for all worlds.

    while not stopped:
        a step: world.parley(), agent.update(optimizer)
        evaluate, stop, save, log as the config says

Who makes the steps is ``Steps``: this process, or many workers.

Everything random is a function of (seed, epoch) for the order of the data and of
(seed, step, microbatch) for the model, so a run of one worker can be repeated to the bit.
Between two steps, ``state`` is all that the loop knows: another process goes on from there.
"""

import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

import numpy

from ..agents.model_agent import ModelAgent
from ..errors import ProtocolError
from ..loggers.logger import Log, Progress
from ..metrics import report_values
from ..models.parameters import averaged_weights
from ..teachers import Teacher
from .epochs import Epochs
from .interruption import Interrupted, Interruption
from .keeper import Keeper
from .loop_settings import LoopSettings
from .random_state import random_state, set_random_state
from .rows import Rows
from .selection import Selection
from .steps import Learnt, Steps
from .stopping import Clock, Position


class TrainingLoop:
    """Trains one agent in one world.

    steps (Steps): Make the steps, with the agent and the world of the training teacher.
    log (Log): Told once of each step, and of the evaluation at step 0.
    evaluate (Optional[Callable]): Gives the dev report (metric name to value); None
        without dev data: then nothing is compared, and the last weights are the best.
    keeper (Keeper): Saves models and checkpoints.
    interruption (Interruption): Receives signals.
    """

    def __init__(
        self,
        agent: ModelAgent,
        teacher: Teacher,
        steps: Steps,
        settings: LoopSettings,
        log: Log,
        evaluate: Optional[Callable[[], Dict[str, float]]],
        keeper: Keeper,
        interruption: Interruption,
    ):
        self.agent, self.steps, self.world = agent, steps, steps.world
        self.settings, self.log = settings, log
        self.evaluate, self.keeper, self.interruption = evaluate, keeper, interruption
        self.position = Position()
        self.clock = Clock()
        self.epochs = Epochs(teacher)
        self.rows = Rows(settings.score)
        self.selection = Selection(
            settings.score,
            settings.score_direction,
            settings.patience,
            settings.target_score,
            has_dev=evaluate is not None,
        )
        self.learn_rate: Optional[float] = None
        self.gradient_norm: Optional[float] = None
        self.loss_per_example = float("nan")
        self.asked_to_stop = ""  # Unlike limits, nothing in the config can change it.
        self.stopped_because = ""
        self._evaluated_step = self._saved_step = -1
        self._must_evaluate = True
        self._must_save = settings.has_checkpoints

    def run(self) -> str:
        """Train until a limit is reached.

        RETURNS (str): Why it ended, as a phrase for the user.
        RAISES (TrainingError): If a loss or gradient is not finite.
        RAISES (Interrupted): If a signal ended it; a checkpoint is written before.
        """
        # Overflow ends in an error that names the examples; NumPy's warning would only
        # come before it.
        with numpy.errstate(over="ignore", invalid="ignore", divide="ignore"):
            with self.interruption.waiting():
                self._run()
        return self.stopped_because

    def _run(self) -> None:
        if self._must_save:  # Before anything else: the first evaluation may be long.
            self._save()
        self._between_steps()
        while not self.stopped_because:
            if not self.epochs.is_running:
                self.world.start_epoch(self.epochs.number, self.settings.seed)
                self.epochs.begin(self.position)
            if not self.world.epoch_done():
                self._count(self.steps.take(self.position.step, self._room()))
            if self.world.epoch_done():
                self._count(self.steps.settle())
                if not self.epochs.end(self.position):
                    self.asked_to_stop = "no training example had a label"
            self._between_steps()
            if self._evaluated_step < self.position.step:
                self.log(self._progress(), None)

    def _count(self, learnt: List[Learnt]) -> None:
        """Updates of the weights were made."""
        for step in learnt:
            self.position.step += 1
            self.position.examples += step.examples
            self.epochs.count(step.examples)
            self.learn_rate, self.gradient_norm = step.learn_rate, step.gradient_norm
            self.loss_per_example = step.loss
        if self.epochs.is_running:
            self.epochs.locate(self.position, self.world.epoch_done())

    def _room(self) -> float:
        """Steps that can be made before something may be due."""
        settings = self.settings
        limits = (settings.limits, settings.every, settings.every_checkpoint)
        epochs = min(limit.epochs_left(self.position) for limit in limits)
        steps = min(limit.steps_left(self.position) for limit in limits)
        return min(steps, self.epochs.steps_left(self.position, epochs))

    def _progress(self) -> Progress:
        return Progress(
            step=self.position.step,
            epoch=self.position.epoch,
            examples=self.position.examples,
            loss_per_example=self.loss_per_example,
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
            self._count(self.steps.settle())
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

    # --- evaluation ---------------------------------------------------------------

    def _evaluate_if_due(self) -> None:
        if not self._must_evaluate or self.interruption.received is not None:
            return
        measured, drawn = self.steps.metrics_state(), random_state()
        try:
            self._evaluate()
        except Interrupted:
            if self.interruption.is_urgent:
                raise
            # It is left for when the run goes on, with the same draws.
            set_random_state(drawn)
            self.agent.forget_computed()
            self.steps.set_metrics_state(measured)

    def _evaluate(self) -> None:
        """Evaluate with the averaged weights, if any; keep the best; log."""
        seconds = self.clock.seconds()
        training = report_values(self.steps.report())
        started = time.perf_counter()
        with self._weights_to_keep():
            with self.interruption.waiting(False):
                report = self.evaluate() if self.evaluate is not None else {}
            is_best = self.selection.see(report, self.position.step)
            self.keeper.evaluated(self.position, report, is_best)
        self.steps.reset_metrics()
        self.clock.leave_out(time.perf_counter() - started)
        self.settings.every.done(self.position, seconds)
        self._evaluated_step = self.position.step
        self._must_evaluate = False
        self._must_save |= self.settings.checkpoint_evaluations
        info = self.rows.make(
            self.position,
            seconds,
            report,
            training,
            is_best,
            learn_rate=self.learn_rate,
            gradient_norm=self.gradient_norm,
            total_steps=self._total_steps(),
        )
        self.log(self._progress(), info)
        for callback in self.settings.callbacks.values():
            if callback(info, self.agent):
                self.asked_to_stop = self.asked_to_stop or "a callback asked to stop"

    @contextmanager
    def _weights_to_keep(self) -> Iterator[None]:
        """The averaged weights in their place, if there are any."""
        with averaged_weights(self.agent.parameters, self.settings.optimizer) as changed:
            if changed:
                self.agent.forget_computed()
            yield
        if changed:
            self.agent.forget_computed()

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
            "world": self._world_state(),
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
            "metrics": self.steps.metrics_state(),
            "callbacks": {
                name: callback.state()
                for name, callback in self.settings.callbacks.items()
                if hasattr(callback, "state")
            },
            "random": random_state(),
        }

    def _world_state(self) -> Optional[Dict[str, Any]]:
        try:
            return self.world.state()
        except ProtocolError:
            if self.epochs.is_running:
                raise
            return None

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to where ``state`` was taken; agent and optimizer are there already."""
        if state["world"] is not None:
            self.world.restore(state["world"])
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
        self.steps.set_metrics_state(state["metrics"])
        for name, callback in self.settings.callbacks.items():
            if name in state["callbacks"] and hasattr(callback, "restore"):
                callback.restore(state["callbacks"][name])
        set_random_state(state["random"])
