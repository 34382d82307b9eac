"""Steps that all workers make together, with the same bits whatever their number."""

import time
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from ...errors import ConfigError, Problem, WorkerError
from ...optimizers.scored_schedules import schedule_states
from ...optimizers.state import ARRAYS
from ...protocol import StepReport
from ...teachers import Teacher
from ...training.experiment import Experiment
from ...training.interruption import Interruption
from ..crew import MAX_WAIT_SECONDS
from .crew_planes import make_planes
from .evaluating import evaluate_alone, evaluate_together
from .joined_reports import joined_reports
from .lone_plane import LonePlane
from .pace import Pace
from .peer import Part, Peer, Ran
from .ray_cluster import FREE_SECONDS, Died, RayCluster, Team
from .ray_runner import RayRunner
from .recipe import recipe_of
from .slots import Slots

# A call of workers that changes where they are: its name and what it is given.
Call = Tuple[Any, ...]


class SyncRunner(RayRunner):
    """See ``build_ray``. Workers are asked for some steps at a time, which they make among
    themselves. If one dies, all go back to the last snapshot and repeat the calls since: the
    same bits come of them."""

    is_per_worker = True

    def begin(
        self,
        experiment: Experiment,
        teacher: Teacher,
        interruption: Interruption,
        note: Callable[[str], None],
    ) -> None:
        self._begin(experiment, interruption, note)
        self.pace, self.is_done = Pace(), True
        self.crew: Any
        if self.num_workers:
            self.crew = RemotePeers(self, teacher)
        else:
            self.crew = LonePeer(self, teacher)

    def end(self) -> None:
        self.crew.end()
        self._take_home()

    def start_epoch(self, epoch: int) -> None:
        self.is_done = self.crew.do("start_epoch", epoch)[0]

    def epoch_done(self) -> bool:
        return self.is_done

    def take(self, step: int, room: float) -> List[StepReport]:
        n_steps = self.pace.begin(room)
        ran: List[Ran] = self.crew.do("run", step, n_steps)
        n_made = len(ran[0].steps)
        seconds = self.pace.end(n_made)
        self.is_done = ran[0].is_done
        self._follow(n_made)
        self.learner.weights_changed()
        reports = [_joined([each.steps[number] for each in ran]) for number in range(n_made)]
        counts = [sum(r.examples for part in each.steps for _, r in part.reports) for each in ran]
        self._tell([count / seconds for count in counts])
        # Not everyone owns something.
        self.crew.made(step + n_made, sorted({name for each in ran for name in each.kept}))
        return reports

    def settle(self) -> List[StepReport]:
        self.crew.gather()
        return []

    def evaluate(self, teacher: Teacher) -> Dict[str, float]:
        return self.crew.evaluate(teacher)

    def state(self) -> Dict[str, Any]:
        return {"world": self.crew.state(), "microbatches": self.n_microbatches}

    def restore(self, state: Mapping[str, Any]) -> None:
        there = state.get("microbatches")
        if there != self.n_microbatches:
            text = f"[runner] a step has {self.n_microbatches} microbatches, but had {there}"
            raise ConfigError([Problem("", text, f"set microbatches = {there}, or start anew")])
        self.is_done = self.crew.do("restore", state["world"])[0]


def _joined(parts: Sequence[Part]) -> StepReport:
    """What came of a step, from what each worker tells of it."""
    numbered = sorted((each for part in parts for each in part.reports), key=lambda each: each[0])
    joined = joined_reports([report for _, report in numbered])
    return joined._replace(gradient_norm=parts[0].norm, learn_rate=parts[0].learn_rate)


class LonePeer:
    """This process as the only worker.

    runner (SyncRunner): Whose it is.
    teacher (Teacher): Of the training data.
    """

    def __init__(self, runner: SyncRunner, teacher: Teacher):
        self.runner, experiment = runner, runner.experiment
        self.peer = Peer(experiment, teacher)
        slots = Slots(runner.n_microbatches, 1)
        self.plane = LonePlane(experiment.learner.weights, self.peer.stretches, slots)
        for name in ARRAYS:
            if runner._kept(name) is not None:
                self.plane.state[name][:] = runner._kept(name)
        self.peer.join(self.plane, runner._optimizer_state())
        self._told_schedules = schedule_states(experiment.optimizer)

    def do(self, call: str, *given: Any) -> List[Any]:
        """Call a method."""
        states = schedule_states(self.runner.experiment.optimizer)
        if states != self._told_schedules:
            self.peer.restore_schedules(states)
            self._told_schedules = states
        return [getattr(self.peer, call)(*given)]

    def made(self, step: int, kept: List[str]) -> None:
        """Steps were made."""
        self.runner._bind(self.plane.state, kept)

    def gather(self) -> None:
        """Nothing is elsewhere."""

    def evaluate(self, teacher: Teacher) -> Dict[str, float]:
        """As one process does."""
        return evaluate_alone(self.runner.experiment, teacher)

    def state(self) -> Dict[str, Any]:
        """Of the world."""
        return self.peer.state()

    def end(self) -> None:
        """Let go of it."""
        self.peer.walk.world.shutdown()


class RemotePeers:
    """Workers in processes that Ray watches.

    runner (SyncRunner): Whose they are.
    teacher (Teacher): Of the training data.
    RAISES (DialogError): If they cannot begin.
    """

    def __init__(self, runner: SyncRunner, teacher: Teacher):
        self.runner, settings = runner, runner.settings
        self.experiment, self.learner = runner.experiment, runner.learner
        self.n_gpus: float = settings["num_gpus_per_worker"]
        self.calls: List[Call] = []
        self._kept: List[str] = []
        self.step = self.saved_step = 0
        names = ("address", "num_cpus", "object_store_memory")
        self.cluster = RayCluster(*(settings[name] for name in names))
        self.team = Team(self.cluster, runner.interruption, runner.num_workers, self.n_gpus)
        self.planes: Any = None
        try:
            n = runner.num_workers
            self.cluster.check_room(n, self.n_gpus)
            self.recipe = self.cluster.ray.put(recipe_of(self.experiment, teacher))
            self._start(n)
            self._join()
            self.stretches = self.learner.parameters.stretches  # type: ignore[attr-defined]
            self._form()
            self._snapshot()
        except Died as death:
            self.end()
            raise WorkerError(death.workers[0], f"it could not begin: {death}") from None
        except BaseException:
            self.end()
            raise
        self._told_schedules = schedule_states(self.experiment.optimizer)

    def _start(self, n_workers: int) -> None:
        is_near = self.runner.settings["plane"] != "store"
        self.team.start(n_workers, self.recipe, is_near)

    def _join(self) -> None:
        """Wait until all have started."""
        if self.team.join(MAX_WAIT_SECONDS) == 0:
            raise WorkerError(0, "no worker could begin: their processes died")

    def _form(self) -> None:
        """All that are there work together from here on, with the weights and the state that
        this process sees."""
        self._weave(self.runner._optimizer_state(), {})

    def _weave(self, state: Mapping[str, Any], saved: Mapping[str, Any]) -> None:
        old = self.planes
        slots = Slots(self.runner.n_microbatches, len(self.team.actors))
        self.planes = make_planes(self.runner, self.team, slots, self.stretches)
        self.team.abort = self.planes.abort
        if saved:
            self.planes.fill(saved["weights"], saved["arrays"])
        self.planes.join(state)
        if old is not None:
            old.close()

    # --- calls, which are repeated if somebody dies ----------------------------------------

    def do(self, call: str, *given: Any) -> List[Any]:
        """Call a method of every worker that moves them on."""
        states = schedule_states(self.experiment.optimizer)
        if states != self._told_schedules:
            self._do("restore_schedules", states)
            self._told_schedules = states
        return self._do(call, *given)

    def _do(self, call: str, *given: Any) -> List[Any]:
        answers = self._surviving(lambda: self.team.each(call, *given))
        self.calls.append((call, *given))
        return answers

    def _surviving(self, attempt: Callable[[], Any]) -> Any:
        """What a call gives, in the end."""
        while True:
            try:
                return attempt()
            except Died as death:
                self._recover(death)

    def _recover(self, death: Died) -> None:
        """Replace the dead, go back to the snapshot, and repeat what was done since."""
        began = time.monotonic()
        while True:
            try:
                self._replace(death)
                self._go_back()
                for call in self.calls:
                    self.team.each(*call)
                # This process sees what it saw.
                self.planes.made(self._kept)
                self.planes.gather()
                break
            except Died as another:
                death = another
        n, seconds = len(self.team.actors), time.monotonic() - began
        who = ", ".join(map(str, death.workers))
        self.runner.note(
            f"[runner] worker {who} died: {n} go on from step {self.saved_step:,} "
            f"({seconds:.1f} seconds; {self.runner.n_restarts} so far)"
        )

    def _replace(self, death: Died) -> None:
        """Go on without the dead; others are started meanwhile, as far as there is room."""
        runner = self.runner
        runner.n_restarts += len(death.workers)
        most = runner.settings["max_restarts"]
        if runner.n_restarts > most:
            text = f"it died, and [runner] max_restarts = {most}: {death}"
            raise WorkerError(death.workers[0], text)
        self.team.remove(death.workers)
        self._fill_up()
        if not self.team.actors:
            if not self.team.n_starting:
                raise WorkerError(death.workers[0], f"it was the last, and died: {death}")
            self._join()

    def _fill_up(self) -> None:
        """Start workers for those that are missing."""
        missing = self.runner.num_workers - len(self.team.actors) - self.team.n_starting
        if missing and not self.team.actors:
            # What the last ones had may not be free yet.
            until = time.monotonic() + FREE_SECONDS
            while not self.cluster.fitting(missing, self.n_gpus) and time.monotonic() < until:
                time.sleep(0.05)
        self._start(self.cluster.fitting(missing, self.n_gpus) if missing else 0)

    # --- snapshots ------------------------------------------------------------------------

    def made(self, step: int, kept: List[str]) -> None:
        """Steps were made."""
        self.step, self._kept = step, kept
        self.planes.made(kept)
        if len(self.team.actors) < self.runner.num_workers:
            self._surviving(self._take_in)
        if step - self.saved_step >= self.runner.settings["snapshot_every"]:
            self._surviving(self._snapshot)

    def _take_in(self) -> None:
        """Let those work with the others that have started again."""
        if self.team.started():
            self._snapshot()
            if self.team.join():
                self._form()
                self.team.each("go_to", self._saved["place"])
        self._fill_up()

    def _snapshot(self) -> None:
        place = self.team.each("place")[0]
        self.planes.gather()
        arrays = {name: self.runner._kept(name) for name in ARRAYS}
        self._saved = {
            "place": place,
            "weights": self.learner.weights.copy(),
            "arrays": {name: array.copy() for name, array in arrays.items() if array is not None},
            "state": self.runner._optimizer_state(),
        }
        self.saved_step, self.calls = self.step, []

    def _go_back(self) -> None:
        self._weave(self._saved["state"], self._saved)
        self.team.each("go_to", self._saved["place"])

    def gather(self) -> None:
        """Let this process see weights and state as they are."""
        self._surviving(lambda: self.planes.gather())  # Of those who are there by then.

    # --- evaluation -----------------------------------------------------------------------

    def evaluate(self, teacher: Teacher) -> Dict[str, float]:
        """See ``evaluate_together``."""

        def ask(split: str, shown: Any) -> List[Any]:
            def attempt() -> List[Any]:
                self.learner.weights[:] = shown
                self.learner.weights_changed()
                weights = self.planes.to_evaluate(shown)
                return self.team.each("evaluate", split, len(self.team.actors), weights)

            return self._surviving(attempt)

        return evaluate_together(self.experiment, teacher, ask)

    def state(self) -> Dict[str, Any]:
        """Of the world."""
        return self._surviving(lambda: self.team.each("state"))[0]

    def end(self) -> None:
        """Let all of them go."""
        self.team.end()
        if self.planes is not None:
            self.planes.close()
        self.cluster.close()
