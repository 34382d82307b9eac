"""Synchronous training: bit for bit the same result with any number of workers."""

from functools import partial
from typing import Any, Dict, List, Mapping, Sequence, Union

from ...errors import ConfigError, Problem
from ...protocol import StepReport
from ...teachers import Teacher
from .joined_reports import joined_reports
from .lone_peer import LonePeer
from .pace import Pace
from .peer import PeerSteps, StepPart
from .ray_runner import RayRunner
from .remote_peers import RemotePeers


class SyncRunner(RayRunner):
    """Train synchronously (see ``build_ray``). One call asks workers for several steps, which they
    make together without this process."""

    def _make_crew(self, teacher: Teacher) -> Union[LonePeer, RemotePeers]:
        self.pace, self.is_done = Pace(), True
        if self.n_microbatches < self.num_workers:
            text = f"a step has {self.n_microbatches} microbatches for {self.num_workers} workers"
            self.note(f"[runner] {text}, so some have nothing to do. Raise microbatches.")
        return RemotePeers(self, teacher) if self.num_workers else LonePeer(self, teacher)

    def start_epoch(self, epoch: int) -> None:
        self.is_done = self._do("start_epoch", epoch)[0]

    def epoch_done(self) -> bool:
        return self.is_done

    def take(self, step: int, room: float) -> List[StepReport]:
        n_steps = self.pace.begin(room)
        ran: List[PeerSteps] = self._do("run", step, n_steps)
        n_made = len(ran[0].steps)
        seconds = self.pace.end(n_made)
        self.is_done = ran[0].is_done
        self._follow(n_made)
        self.see_held(each.gpu_bytes for each in ran)
        self.learner.weights_changed()
        reports = [_joined([each.steps[number] for each in ran]) for number in range(n_made)]
        counts = [sum(r.examples for part in each.steps for r in part.reports) for each in ran]
        self.tell([count / seconds for count in counts])
        # Join the names of all workers, because a worker that owns no parameters has no arrays.
        self.crew.made(step + n_made, sorted({name for each in ran for name in each.kept}))
        return reports

    def _do(self, call: str, *given: Any) -> List[Any]:
        """Call a method that changes the state of every worker, after sending changed schedules."""
        self._tell_schedules(partial(self.crew.do, "restore_schedules"))
        return self.crew.do(call, *given)

    def settle(self) -> List[StepReport]:
        self.crew.gather()
        return []

    def state(self) -> Dict[str, Any]:
        return {"place": self.crew.place(), "microbatches": self.n_microbatches}

    def restore(self, state: Mapping[str, Any]) -> None:
        there = state.get("microbatches")
        if there != self.n_microbatches:
            text = f"[runner] a step has {self.n_microbatches} microbatches, not {there} as saved"
            raise ConfigError(
                [Problem("", text, f"set microbatches = {there}, or start from scratch")]
            )
        self.is_done = self._do("go_to", state["place"])[0]


def _joined(parts: Sequence[StepPart]) -> StepReport:
    """Merge the parts of all workers into the report of a step."""
    # The microbatches of each worker follow those of the worker before (see ``Slots``).
    joined = joined_reports([report for part in parts for report in part.reports])
    return joined._replace(gradient_norm=parts[0].norm, learn_rate=parts[0].learn_rate)
