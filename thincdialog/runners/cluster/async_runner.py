"""Steps that are made with each gradient as it comes."""

import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ...config import build_block
from ...errors import ConfigError, DialogError, Problem, WorkerError
from ...ops.alignment import aligned_zeros
from ...optimizers.lazy_adam import LazyAdam
from ...optimizers.scored_schedules import schedule_states
from ...optimizers.shared_state import settings_of
from ...optimizers.state import ARRAYS
from ...protocol import StepReport
from ...teachers import Teacher
from ...training.experiment import Experiment
from ...training.interruption import Interruption
from ...training.log_rows import STALENESS
from ..crew import MAX_WAIT_SECONDS, Failure
from ..stale_steps import describe_stale
from .account import Account, steps_of
from .evaluating import evaluate_alone, evaluate_together
from .gradient_server import GradientServer, Made, Told
from .mapped_arrays import MappedArrays
from .pace import Pace
from .ray_cluster import FREE_SECONDS, Died, RayCluster, Team
from .ray_runner import RayRunner
from .recipe import recipe_of
from .server_link import ServerActor, server_layout
from .stateless_worker import StatelessWorker

# How long steps are waited for, before the loop looks at the time.
TAKE_SECONDS = 0.2
NOTHING = Told([], 0, None, False)


class AsyncRunner(RayRunner):
    """See ``build_ray``. One server has the weights; workers get units of work from it, one
    after the other, and bring gradients. If a worker dies, what it had is learnt by another;
    if the server dies, another one goes on from the last snapshot."""

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
        # Units of work, and where the walk of the epoch began.
        self.origin: Dict[str, Any] = {}
        self._told_schedules = schedule_states(experiment.optimizer)
        self.crew: Any
        if not self.num_workers:
            self.crew = LoneServer(self, teacher)
        else:
            self.crew = RemoteServer(self, teacher)
            line = ""
            if type(experiment.optimizer) is LazyAdam:
                line = describe_stale(settings_of(experiment.optimizer), self.num_workers)
            if line:
                note(line)

    @property
    def bound(self) -> int:
        """Versions that a gradient may be old."""
        return max(0, self.num_workers - 1) + self.settings["staleness"]

    def first_snapshot(self) -> Dict[str, Any]:
        """What a server begins with."""
        arrays = {name: self._kept(name) for name in ARRAYS}
        return {
            "version": 0,
            "untold": [],
            "ledger": {"first": 0, "next": 0, "end": None, "again": []},
            "weights": self.learner.weights,
            "arrays": {name: array for name, array in arrays.items() if array is not None},
            "state": self._optimizer_state(),
        }

    def end(self) -> None:
        self.crew.end()
        self._take_home()

    def start_epoch(self, epoch: int) -> None:
        self.origin = self.crew.start_epoch(epoch)
        self.is_done = False

    def epoch_done(self) -> bool:
        return self.is_done and not self.crew.busy

    def take(self, step: int, room: float) -> List[StepReport]:
        states = schedule_states(self.experiment.optimizer)
        if states != self._told_schedules:
            self.crew.restore_schedules(states)
            self._told_schedules = states
        return self._reports(self.crew.take(room))

    def _reports(self, told: Told) -> List[StepReport]:
        self.is_done = told.is_over
        steps = steps_of(told.made)
        self._follow(len(steps))
        if steps:
            self.crew.tell(steps)
        return [step.report for step in steps]

    def settle(self) -> List[StepReport]:
        return self._reports(self.crew.settle())

    def evaluate(self, teacher: Teacher) -> Dict[str, float]:
        return self.crew.evaluate(teacher)

    def state(self) -> Dict[str, Any]:
        ledger = self.crew.snapshot()["ledger"]
        return {"origin": self.origin, "ledger": ledger, "unit": self.n_microbatches}

    def restore(self, state: Mapping[str, Any]) -> None:
        if state.get("unit") != self.n_microbatches:
            text = f"[runner] a step has {self.n_microbatches} microbatches"
            text += f", but had {state.get('unit')}" if "unit" in state else ", but was synchronous"
            hint = "set mode and microbatches as they were, or start anew"
            raise ConfigError([Problem("", text, hint)])
        self.origin = dict(state["origin"])
        self.crew.restore(state["ledger"])
        self.is_done = False

    def take_over(self, snapshot: Mapping[str, Any]) -> None:
        """Let this process see weights and optimizer as they are at the server."""
        self.learner.weights[:] = snapshot["weights"]
        self.learner.weights_changed()
        own = {}
        for name, array in snapshot["arrays"].items():
            own[name] = aligned_zeros(len(array))
            own[name][:] = array
        self._bind(own, list(own))


class LoneServer:
    """This process as server and only worker."""

    busy: Tuple[int, ...] = ()

    def __init__(self, runner: AsyncRunner, teacher: Teacher):
        self.runner, experiment = runner, runner.experiment
        self.worker = StatelessWorker(experiment, teacher, runner.n_microbatches)
        optimizer = build_block(experiment.checked, "training.optimizer")
        values, ops = experiment.learner.weights, experiment.learner.model.ops
        self.server = GradientServer(self.worker.stretches, optimizer, ops, values, runner.bound)
        first = runner.first_snapshot()
        self.server.restore(first)
        self.pace = Pace()

    def start_epoch(self, epoch: int) -> Dict[str, Any]:
        """See ``StatelessWorker.start_epoch``."""
        return self.worker.start_epoch(epoch, self.server.start_epoch())

    def restore(self, ledger: Mapping[str, Any]) -> None:
        """Go on with these units."""
        self.server.ledger.restore(ledger)
        self.worker.go_to(self.runner.origin, ledger["first"])

    def restore_schedules(self, states: Mapping[str, Any]) -> None:
        """See ``GradientServer``."""
        self.server.restore_schedules(states)

    def take(self, room: float) -> Told:
        """Make some steps."""
        self.server.end_at(self.server.version + self.pace.begin(room))
        self.worker.work(lambda learnt: self.server.exchange(0, learnt))
        told = self.server.take()
        self.seconds = self.pace.end(len(steps_of(told.made)))
        return told

    def tell(self, steps: List[Made]) -> None:
        """Show the optimizer's state as it is."""
        self.runner._bind(self.server.plane.state, self.server.owned.kept())
        self.runner.learner.weights_changed()

    def settle(self) -> Told:
        """Nothing is under way."""
        return self.server.take()

    def snapshot(self) -> Dict[str, Any]:
        """See ``GradientServer``."""
        return self.server.snapshot()

    def evaluate(self, teacher: Teacher) -> Dict[str, float]:
        """As one process does."""
        return evaluate_alone(self.runner.experiment, teacher)

    def end(self) -> None:
        """Let go of it."""
        self.worker.walk.world.shutdown()


class RemoteServer:
    """A server and workers in processes that Ray watches.

    busy (Dict[int, ObjectRef]): Of workers that have not come back.
    """

    def __init__(self, runner: AsyncRunner, teacher: Teacher):
        self.runner, settings = runner, runner.settings
        self.experiment, self.learner = runner.experiment, runner.learner
        self.n_gpus: float = settings["num_gpus_per_worker"]
        names = ("address", "num_cpus", "object_store_memory")
        self.cluster = RayCluster(*(settings[name] for name in names))
        self.ray = self.cluster.ray
        self.team = Team(self.cluster, runner.interruption, runner.num_workers, self.n_gpus)
        self.busy: Dict[int, Any] = {}
        self.server: Any = None
        self.memory: Optional[MappedArrays] = None
        self.account = Account(runner.first_snapshot())
        self._heard = time.monotonic()
        self._examples: Dict[int, int] = {}
        self._stale = ""
        try:
            self.cluster.check_room(runner.num_workers, self.n_gpus)
            self.recipe = self.ray.put(recipe_of(self.experiment, teacher))
            self.is_near = settings["plane"] != "store"
            self.team.start(runner.num_workers, self.recipe, self.is_near)
            self._launch_server()  # Both take their time.
            if self.team.join(MAX_WAIT_SECONDS) == 0:
                raise WorkerError(0, "no worker could begin: their processes died")
            self._set_up()
        except Died as death:
            self.end()
            raise WorkerError(0, f"it could not begin: {death}") from None
        except BaseException:
            self.end()
            raise

    def _set_up(self) -> None:
        """Server and workers find each other."""
        wanted = self.runner.settings["plane"]
        nodes = {*self.team.each("node"), self.cluster.node}
        if wanted == "shm" and len(nodes) > 1:
            text = f'[runner] plane = "shm" is for one machine, but workers are on {len(nodes)}'
            raise ConfigError([Problem("", text, 'set "auto" or "store"')])
        parameters: Any = self.learner.parameters  # type: ignore[attr-defined]
        n, n_workers = len(self.learner.weights), self.runner.num_workers
        layout = server_layout(n, parameters.stretches, n_workers)
        if len(nodes) > 1 or wanted == "store":
            self._begin_server()
            self._join(range(len(self.team.actors)))
            return
        for is_named in (False, True):
            self.memory = MappedArrays(layout, is_named)
            if self._begin_server() and self._join(range(len(self.team.actors))):
                return
            self.memory.close()
        raise DialogError(
            '[runner] workers cannot open the memory of the run\'s process: set plane = "store"'
        )

    def _launch_server(self) -> None:
        self.server = self.cluster.start(ServerActor, n_cpus=0, n_gpus=0, is_near=True, at_once=1)
        self._made = self.server.make.remote(self.recipe)

    def _begin_server(self) -> bool:
        """RETURNS (bool): Whether it can open the memory."""
        mapping = None if self.memory is None else self.memory.mapping
        runner = self.runner
        given = (*self.account.start(), runner.bound, runner.num_workers, mapping)
        answers = [self._sure(self._made), self._sure(self.server.begin.remote(*given))]
        for answer in answers:
            if isinstance(answer, Failure):
                raise WorkerError(0, f"the server could not begin: {answer.text}")
        self.server_pid: int = answers[0]
        return answers[1]

    def _join(self, numbers: Any) -> bool:
        """Let workers work for the server; RETURNS whether all can."""
        mapping = None if self.memory is None else self.memory.mapping
        runner, first = self.runner, self.account.saved["ledger"]["first"]
        given = (self.server, runner.n_microbatches, mapping, runner.origin, first)
        refs = {
            number: self.team.actors[number].call.remote("join_server", number, *given)
            for number in numbers
        }
        return all(self.team.wait(refs).values())

    def _ask(self, name: str, *given: Any) -> Any:
        """What a method of the server gives.

        RAISES (Died): If it is gone.
        """
        answer = self._sure(self.server.call.remote(name, *given))
        if isinstance(answer, Failure):
            raise answer.error(0)
        return answer

    def _sure(self, answer: Any) -> Any:
        """What the server answers.

        RAISES (Died): If it is gone.
        """
        for _ in self.team.ended({answer: 0}):
            pass
        try:
            return self.ray.get(answer)
        except self.ray.exceptions.RayError as error:
            raise Died([], str(error)) from None

    # --- epochs ---------------------------------------------------------------------------

    def start_epoch(self, epoch: int) -> Dict[str, Any]:
        """See ``StatelessWorker.start_epoch``."""

        def attempt() -> Dict[str, Any]:
            first = self._ask("start_epoch")
            self.runner.origin = self.team.each("start_epoch", epoch, first)[0]
            self.account.start_epoch(self._ask("snapshot"))
            return self.runner.origin

        return self._surely(attempt)

    def restore(self, ledger: Mapping[str, Any]) -> None:
        """Go on with these units."""
        saved = {**self.account.saved, "ledger": dict(ledger)}
        self.account.save(saved)

        def attempt() -> None:
            self._ask("restore", saved)
            self.team.each("go_to", self.runner.origin, ledger["first"])

        self._surely(attempt)

    def restore_schedules(self, states: Mapping[str, Any]) -> None:
        """See ``GradientServer``."""

        def attempt() -> None:
            self._ask("restore_schedules", states)
            self._save()

        self._surely(attempt)

    # --- steps ----------------------------------------------------------------------------

    def take(self, room: float) -> Told:
        """What has come of steps, after a while."""
        try:
            self._ask("end_at", self.account.n_told + int(min(room, 1 << 40)))
            if not self.busy:
                self._fill_up()
                self._send_out()
            return self._listen(TAKE_SECONDS)
        except Died as death:
            self._recover(death)
            return NOTHING

    def _send_out(self) -> None:
        for number, actor in enumerate(self.team.actors):
            if number not in self.busy:
                self.busy[number] = actor.call.remote("work")
        self._heard = time.monotonic()

    def _listen(self, seconds: float) -> Told:
        """What has come; those that came back are no longer busy."""
        refs = {ref: number for number, ref in self.busy.items()}
        done, _ = self.ray.wait(list(refs), num_returns=len(refs), timeout=seconds)
        died: List[int] = []
        text = ""
        for ref in done:
            number = refs[ref]
            del self.busy[number]
            try:
                answer = self.ray.get(ref)
            except self.ray.exceptions.RayError as error:
                died.append(number)
                text = str(error)
                continue
            if isinstance(answer, Failure):
                if answer.text.startswith("ServerDied"):
                    raise Died([], "the server died")
                raise answer.error(number)
        if died:
            raise Died(died, text)
        told: Told = self._ask("take")
        if told.made or done:
            self._heard = time.monotonic()
        elif time.monotonic() - self._heard > MAX_WAIT_SECONDS:
            text = f"no answer within {MAX_WAIT_SECONDS:g} seconds: it hangs, or is very slow"
            raise WorkerError(min(self.busy), text)
        told = told._replace(made=self.account.new(told))
        n_since = told.version - self.account.saved["version"]
        if n_since >= self.runner.settings["snapshot_every"]:
            self._surely(self._save)
        return told

    def _save(self) -> None:
        self.account.save(self._ask("snapshot"))

    def tell(self, steps: List[Made]) -> None:
        """The live line."""
        now = time.monotonic()
        for worker, _, report in steps:
            self._examples[worker] = self._examples.get(worker, 0) + report.examples
            for name in report.counts:
                if name.startswith(STALENESS):
                    self._stale = f"staleness {name[len(STALENESS) :]}"
        since = now - getattr(self, "_told_at", now - TAKE_SECONDS)
        if since < TAKE_SECONDS:
            return
        numbers = range(len(self.team.actors))
        rates = [self._examples.get(worker, 0) / since for worker in numbers]
        self._examples, self._told_at = {}, now
        self.runner._tell(rates, self._stale)

    def settle(self) -> Told:
        """Wait until nobody is at work."""
        made: List[Made] = []
        is_over = self.runner.is_done
        while True:
            try:
                self._ask("end_at", 0)
                if self.account.owed and not self.busy:
                    self._fill_up()
                    self._send_out()
                if not self.busy and not self.account.owed:
                    self._save()
                    break
                told = self._listen(TAKE_SECONDS)
                made += told.made
                is_over = told.is_over
            except Died as death:
                self._recover(death)
        self.runner.take_over(self.account.saved)
        return NOTHING._replace(made=made, is_over=is_over)

    # --- who dies -------------------------------------------------------------------------

    def snapshot(self) -> Dict[str, Any]:
        """The last one, which is how it is when nobody is at work."""
        return self.account.saved

    def _surely(self, attempt: Callable[[], Any]) -> Any:
        """What something gives, whoever dies meanwhile."""
        while True:
            try:
                return attempt()
            except Died as death:
                self._recover(death)

    def _recover(self, death: Died) -> None:
        """Put others in the place of the dead, until nobody dies meanwhile."""
        while True:
            try:
                return self._replace(death)
            except Died as another:
                death = another

    def _replace(self, death: Died) -> None:
        runner, began = self.runner, time.monotonic()
        n_dead = max(1, len(death.workers))
        runner.n_restarts += n_dead
        most = runner.settings["max_restarts"]
        if runner.n_restarts > most:
            who = death.workers[0] if death.workers else 0
            raise WorkerError(who, f"it died, and [runner] max_restarts = {most}: {death}")
        if death.workers:
            self.team.remove(death.workers)
            # Numbers of the others have changed.
            self._call_back()
            self._renumber()
            self._fill_up()
            what = f"worker {', '.join(map(str, death.workers))} died"
        else:
            self._call_back()
            self.account.died()
            self._launch_server()
            self._begin_server()
            self._renumber()
            version = self.account.saved["version"]
            what = f"the server died; another one goes on from step {version:,}"
        seconds = time.monotonic() - began
        runner.note(f"[runner] {what} ({seconds:.1f} seconds; {runner.n_restarts} so far)")

    def _call_back(self) -> None:
        """Nobody works any more, whatever has become of it."""
        try:
            self._ask("end_at", 0)
        except (Died, WorkerError):
            pass
        for _ in self.team.ended({ref: number for number, ref in self.busy.items()}):
            pass
        self.busy = {}

    def _renumber(self) -> None:
        for number in range(self.runner.num_workers):
            self._sure(self.server.forget.remote(number))
        if self.team.actors:
            self._join(range(len(self.team.actors)))

    def _fill_up(self) -> None:
        """Take in those that have started, and start those that are missing."""
        team = self.team
        n_before = len(team.actors)
        if team.n_starting and team.join(0.0 if team.actors else MAX_WAIT_SECONDS):
            self._join(range(n_before, len(team.actors)))
        missing = self.runner.num_workers - len(team.actors) - team.n_starting
        if missing <= 0:
            return
        until = time.monotonic() + (0.0 if team.actors else FREE_SECONDS)
        while not (room := self.cluster.fitting(missing, self.n_gpus)):
            if time.monotonic() >= until:
                break
            time.sleep(0.05)
        team.start(room, self.recipe, self.is_near)
        if not team.actors:
            if not team.n_starting or not team.join(MAX_WAIT_SECONDS):
                raise WorkerError(0, "it was the last, and died; no other one could begin")
            self._join(range(len(team.actors)))

    def evaluate(self, teacher: Teacher) -> Dict[str, float]:
        """See ``evaluate_together``."""

        def ask(split: str, shown: Any) -> List[Any]:
            def attempt() -> List[Any]:
                weights = self.ray.put(shown)
                return self.team.each("evaluate", split, len(self.team.actors), weights)

            return self._surely(attempt)

        return evaluate_together(self.experiment, teacher, ask)

    def end(self) -> None:
        """Let all of them go."""
        self.team.end()
        if self.server is not None:
            self.ray.kill(self.server)
        if self.memory is not None:
            self.memory.close()
        self.cluster.close()
