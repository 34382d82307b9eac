"""Asynchronous training: each gradient is applied when it arrives."""

from typing import Any, Dict, List, Mapping, Union

from ...errors import ConfigError, Problem
from ...optimizers.lazy_adam import LazyAdam
from ...optimizers.shared_state import settings_of
from ...protocol import StepReport
from ...teachers import Teacher
from ..stale_steps import describe_stale
from .account import steps_of
from .gradient_server import UnitReport
from .ledger import Ledger
from .lone_server import LoneServer
from .ray_runner import RayRunner
from .remote_server import RemoteServer


class AsyncRunner(RayRunner):
    """Train asynchronously (see ``build_ray``): one server holds the weights; workers get units of
    work from the server, one after the other, and return gradients."""

    harmless = (*RayRunner.harmless, "staleness")

    def _make_crew(self, teacher: Teacher) -> Union[LoneServer, RemoteServer]:
        make_crew = RemoteServer if self.num_workers else LoneServer
        crew = make_crew(self, teacher, self.bound, self.first_snapshot())
        optimizer = self.experiment.optimizer
        if type(optimizer) is LazyAdam:
            if line := describe_stale(settings_of(optimizer), self.n_workers):
                self.note(line)
        return crew

    @property
    def bound(self) -> int:
        """Maximum age of a gradient, in versions of the weights."""
        return self.n_workers - 1 + self.settings["staleness"]

    def first_snapshot(self) -> Dict[str, Any]:
        """Return the snapshot that the first server begins with."""
        server = {"version": 0, "untold": [], "n_dropped": 0, "ledger": Ledger().state()}
        return {**server, **self.snapshot()}

    def start_epoch(self, epoch: int) -> None:
        self.crew.start_epoch(epoch)

    def epoch_done(self) -> bool:
        return self.crew.is_over and not self.crew.busy

    def take(self, step: int, room: float) -> List[StepReport]:
        self._tell_schedules(self.crew.restore_schedules)
        return self._reports(self.crew.take(room))

    def _reports(self, made: List[UnitReport]) -> List[StepReport]:
        steps = steps_of(made)
        self._follow(len(steps))
        self.see_held(each.gpu_bytes for each in made)
        if steps:
            self.crew.tell(steps)
        return [step.report for step in steps]

    def settle(self) -> List[StepReport]:
        return self._reports(self.crew.settle())

    def state(self) -> Dict[str, Any]:
        return {**self.crew.state(), "unit": self.n_microbatches}

    def restore(self, state: Mapping[str, Any]) -> None:
        if state.get("unit") != self.n_microbatches:
            text = f"[runner] a step has {self.n_microbatches} microbatches"
            was = f"had {state['unit']}" if "unit" in state else "was synchronous"
            text += f", but the saved run {was}"
            hint = "set mode and microbatches as in the saved run, or start from scratch"
            raise ConfigError([Problem("", text, hint)])
        self.crew.restore(state["origin"], state["ledger"])
