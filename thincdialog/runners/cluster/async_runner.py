"""Asynchronous training: each gradient is applied when it arrives."""

from typing import Any, Callable, Dict, List, Mapping

from ...errors import ConfigError, Problem
from ...optimizers.lazy_adam import LazyAdam
from ...optimizers.scored_schedules import schedule_states
from ...optimizers.shared_state import settings_of
from ...protocol import StepReport
from ...teachers import Teacher
from ...training.experiment import Experiment
from ...training.interruption import Interruption
from ..stale_steps import describe_stale
from .account import steps_of
from .gradient_server import ServerReport
from .ledger import Ledger
from .lone_server import LoneServer
from .ray_runner import RayRunner
from .remote_server import RemoteServer


class AsyncRunner(RayRunner):
    """Train asynchronously (see ``build_ray``): one server holds the weights; workers get units of
    work from the server, one after the other, and return gradients."""

    harmless = (*RayRunner.harmless, "staleness")

    def begin(
        self,
        experiment: Experiment,
        teacher: Teacher,
        interruption: Interruption,
        note: Callable[[str], None],
    ) -> None:
        self._begin(experiment, interruption, note)
        self.is_done = True
        self._told_schedules = schedule_states(experiment.optimizer)
        if not self.num_workers:
            self.crew = LoneServer(self, teacher, self.bound, self.first_snapshot())
        else:
            self.crew = RemoteServer(self, teacher, self.bound, self.first_snapshot())
            line = ""
            if type(experiment.optimizer) is LazyAdam:
                line = describe_stale(settings_of(experiment.optimizer), self.num_workers)
            if line:
                note(line)

    @property
    def bound(self) -> int:
        """Maximum age of a gradient, in versions of the weights."""
        return max(0, self.num_workers - 1) + self.settings["staleness"]

    def first_snapshot(self) -> Dict[str, Any]:
        """Return the snapshot that the first server begins with."""
        server = {"version": 0, "untold": [], "n_dropped": 0, "ledger": Ledger().state()}
        return {**server, **self.snapshot()}

    def start_epoch(self, epoch: int) -> None:
        self.crew.start_epoch(epoch)
        self.is_done = False

    def epoch_done(self) -> bool:
        return self.is_done and not self.crew.busy

    def take(self, step: int, room: float) -> List[StepReport]:
        states = schedule_states(self.experiment.optimizer)
        if states != self._told_schedules:
            self.crew.restore_schedules(states)
            self._told_schedules = states
        return self._reports(self.crew.take(room))

    def _reports(self, told: ServerReport) -> List[StepReport]:
        self.is_done = told.is_over
        steps = steps_of(told.made)
        self._follow(len(steps))
        self.see_held(each.gpu_bytes for each in told.made)
        if steps:
            self.crew.tell(steps)
        return [step.report for step in steps]

    def settle(self) -> List[StepReport]:
        return self._reports(self.crew.settle())

    def state(self) -> Dict[str, Any]:
        place = {"origin": self.crew.origin, "ledger": self.crew.ledger()}
        return {**place, "unit": self.n_microbatches}

    def restore(self, state: Mapping[str, Any]) -> None:
        if state.get("unit") != self.n_microbatches:
            text = f"[runner] a step has {self.n_microbatches} microbatches"
            text += f", but had {state.get('unit')}" if "unit" in state else ", but was synchronous"
            hint = "set mode and microbatches as they were, or start from scratch"
            raise ConfigError([Problem("", text, hint)])
        self.crew.restore(state["origin"], state["ledger"])
        self.is_done = False
