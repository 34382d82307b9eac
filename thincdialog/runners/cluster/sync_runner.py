"""Synchronous training: bit for bit the same result with any number of workers."""

from functools import partial
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ...errors import ConfigError, Problem
from ...protocol import StepReport
from ...teachers import Teacher
from ..shared_arrays import Arrays, private_arrays
from .exchange import VALUES, abort, fill
from .joined_reports import joined_reports
from .pace import Pace
from .ray_runner import RayRunner
from .slots import Slots
from .sync_worker import StepPart, SyncSteps, SyncWorker, sync_layout
from .workers import Died


class SyncRunner(RayRunner):
    """Train synchronously (see ``build_ray``). One call asks workers for several steps, which they
    make together without this process, if they share memory. If a worker dies, the others go back
    to the last snapshot and repeat the calls since then, with the same result bit for bit.

    memory (Arrays): The parameters and the optimizer's arrays, as this process sees them.
    is_sent (bool): Whether workers have copies of them, and send each other the changes.
    """

    memory: Arrays
    is_sent = False

    def _begin(self, teacher: Teacher) -> None:
        self.pace, self.is_done = Pace(), True
        # Calls since the last snapshot that have changed the state of workers.
        self.calls: List[Tuple[Any, ...]] = []
        self.step = self.saved_step = 0
        self.kept: List[str] = list(self.arrays())
        self._saved: Any = self.snapshot()
        if self.n_microbatches < self.num_workers:
            counts = f"{self.num_workers} workers, but microbatches = {self.n_microbatches}"
            self.note(f"[runner] {counts}, so some have nothing to do. Raise microbatches.")
        if self.workers is None:
            self.worker = SyncWorker(self.experiment, teacher)
            self._connect()
        else:
            self.workers.join(self.num_workers)
            self._connect()
            self._save()

    def _connect(self) -> None:
        """Connect all current workers, beginning with the last snapshot."""
        saved, workers, learner = self._saved, self.workers, self.learner
        n_workers = 1 if workers is None else len(workers.actors)
        slots = Slots(self.n_microbatches, n_workers)
        layout = sync_layout(learner.parameters.segments, slots)  # type: ignore[attr-defined]
        shared = None if workers is None else self.share(layout)
        self.is_sent = workers is not None and shared is None
        self.memory = shared or private_arrays(layout)
        fill(self.memory, saved)
        if workers is None:
            self.worker.connect(0, slots, self.memory, saved["state"])
        else:
            workers.abort = partial(abort, self.memory)
            sent = workers.ray.put(saved if self.is_sent else {"state": saved["state"]})
            workers.each("connect_sync", list(range(n_workers)), slots, sent)
            learner.use_weights(self.memory[VALUES])
            learner.weights_changed()
        self.bind(self.memory, saved["state"]["kept"])

    # --- calls of workers -------------------------------------------------------------------

    def _do_all(self, call: str, *given: Any) -> List[Any]:
        """Call a method that changes the state of every worker, after sending changed schedules.
        It is called again after a death."""
        self._send_schedule_states(partial(self._record, "restore_schedules"))
        return self._record(call, *given)

    def _record(self, call: str, *given: Any) -> List[Any]:
        if self.workers is None:
            return [getattr(self.worker, call)(*given)]
        answers: List[Any] = self.workers.surely(lambda: self._call(call, *given))
        self.calls.append((call, *given))
        return answers

    def _call(self, call: str, *given: Any) -> List[Any]:
        if call == "run" and self.is_sent and len(self.workers.actors) > 1:
            return self._run(*given)
        return self.workers.each(call, *given)

    def _run(self, step: int, n_steps: int) -> List[SyncSteps]:
        """Make steps with workers that send each other their results (see ``SyncWorker``)."""
        ran = self._exchange(step + 1)
        for _ in range(n_steps - 1):
            if ran[0].is_done:
                break
            more = self._exchange(step + 1 + len(ran[0].steps))
            ran = [new._replace(steps=old.steps + new.steps) for old, new in zip(ran, more)]
        return ran

    def _exchange(self, step: int) -> List[SyncSteps]:
        """Make one step. Ray sends the results of each call to the calls that need them."""
        calls = [actor.call for actor in self.workers.actors]
        n = len(calls)
        learned = [call.options(num_returns=n).remote("learn", step, n_returns=n) for call in calls]
        sums = [
            call.remote("add_up", *(parts[number] for parts in learned))
            for number, call in enumerate(calls)
        ]
        changed = [call.remote("step", *sums) for call in calls]
        return self.workers.wait([call.remote("take", *changed) for call in calls])

    # --- deaths and snapshots -----------------------------------------------------------------

    def go_back(self, death: Died) -> str:
        self._connect()
        self.workers.each("go_to", self._saved["place"])
        for call in self.calls:
            self._call(*call)
        # Give this process the weights and state that it had before.
        self.bind(self.memory, self.kept)
        self._gather()
        n, step = len(self.workers.actors), self.saved_step
        others = "1 worker" if n == 1 else f"{n} workers"
        return f"{death.who} died: resumed with {others} from step {step:,}"

    def _gather(self) -> None:
        """Copy the current weights and state from the workers, unless they are shared."""
        for owned in self.workers.each("owned") if self.is_sent else ():
            for now, arrays in owned:
                for name, array in arrays.items():
                    self.memory[name][now] = array
        self.learner.weights_changed()

    def _save(self) -> None:
        """Make a snapshot."""
        place = self.workers.each("place")[0]
        self._gather()
        self._saved = {"place": place, **self.snapshot()}
        self.saved_step, self.calls = self.step, []

    def _add_started(self) -> None:
        """Add new workers that have started to the others."""
        self._save()
        if self.workers.join():
            self._connect()
            self.workers.each("go_to", self._saved["place"])

    # --- the runner -----------------------------------------------------------------------

    def start_epoch(self, epoch: int) -> None:
        self.is_done = self._do_all("start_epoch", epoch)[0]

    def epoch_done(self) -> bool:
        return self.is_done

    def take(self, step: int, room: float) -> List[StepReport]:
        n_steps = self.pace.begin(room)
        ran: List[SyncSteps] = self._do_all("run", step, n_steps)
        n_made = len(ran[0].steps)
        seconds = self.pace.end(n_made)
        self.is_done = ran[0].is_done
        self._advance_optimizer(n_made)
        self.see_held(each.gpu_bytes for each in ran)
        self.learner.weights_changed()
        reports = [_joined([each.steps[number] for each in ran]) for number in range(n_made)]
        counts = [sum(r.examples for part in each.steps for r in part.reports) for each in ran]
        self.tell([count / seconds for count in counts])
        self.step = step + n_made
        # Join the names of all workers, because a worker that owns no parameters has no arrays.
        self.kept = sorted({name for each in ran for name in each.kept})
        self.bind(self.memory, self.kept)
        if self.workers is not None:
            if self.workers.has_started():
                self.workers.surely(self._add_started)
            if self.step - self.saved_step >= self.settings["snapshot_every"]:
                self.workers.surely(self._save)
        return reports

    def settle(self) -> List[StepReport]:
        if self.workers is not None:
            self.workers.surely(lambda: self._gather())
        return []

    def state(self) -> Dict[str, Any]:
        if self.workers is None:
            place = self.worker.place()
        else:
            place = self.workers.surely(lambda: self.workers.each("place"))[0]
        return {"place": place, "microbatches": self.n_microbatches}

    def restore(self, state: Mapping[str, Any]) -> None:
        there = state.get("microbatches")
        if there != self.n_microbatches:
            text = f"[runner] a step has {self.n_microbatches} microbatches, not {there} as saved"
            raise ConfigError(
                [Problem("", text, f"set microbatches = {there}, or start from scratch")]
            )
        self.is_done = self._do_all("go_to", state["place"])[0]


def _joined(parts: Sequence[StepPart]) -> StepReport:
    """Merge the parts of all workers into the report of a step."""
    # The microbatches of each worker follow those of the worker before (see ``Slots``).
    joined = joined_reports([report for part in parts for report in part.reports])
    return joined._replace(gradient_norm=parts[0].norm, learn_rate=parts[0].learn_rate)
