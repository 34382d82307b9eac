"""A server of gradients, and workers that bring them one after the other."""

import time
from typing import Any, Dict, List, Mapping, Optional

from ...errors import ConfigError, DialogError, Problem, WorkerError
from ...teachers import Teacher
from ...training.log_rows import STALENESS
from ..crew import MAX_WAIT_SECONDS, Failure
from .account import Account
from .gradient_server import Made, Told
from .mapped_arrays import MappedArrays
from .ray_cluster import Died
from .ray_runner import RayRunner
from .remote_crew import RemoteCrew
from .server_link import ServerActor, server_layout

# How long steps are waited for, before the loop looks at the time.
TAKE_SECONDS = 0.2
NOTHING = Told([], 0, None, False)


class RemoteServer(RemoteCrew):
    """A server and workers in processes that Ray watches. If a worker dies, what it had is
    learnt by another; if the server dies, another one goes on from the last snapshot.

    bound (int): Versions that a gradient may be old.
    first (Mapping[str, Any]): Snapshot that the server begins with.
    busy (Dict[int, ObjectRef]): Of workers that have not come back.
    """

    def __init__(self, runner: RayRunner, teacher: Teacher, bound: int, first: Dict[str, Any]):
        self.bound, self.account = bound, Account(first)
        self.busy: Dict[int, Any] = {}
        self.server: Any = None
        self.memory: Optional[MappedArrays] = None
        # Where the walk of the epoch began.
        self.origin: Dict[str, Any] = {}
        self._is_over = True
        self._heard = time.monotonic()
        self._examples: Dict[int, int] = {}
        self._stale = ""
        super().__init__(runner, teacher)

    def _begin(self) -> None:
        self._launch_server()  # Both take their time.
        self._join()
        self._set_up()

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
            self._let_in(range(len(self.team.actors)))
            return
        for is_named in (False, True):
            self.memory = MappedArrays(layout, is_named)
            if self._begin_server() and self._let_in(range(len(self.team.actors))):
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
        given = (*self.account.start(), self.bound, self.runner.num_workers, mapping)
        answers = [self._sure(self._made), self._sure(self.server.begin.remote(*given))]
        for answer in answers:
            if isinstance(answer, Failure):
                raise WorkerError(0, f"the server could not begin: {answer.text}")
        self.server_pid: int = answers[0]
        return answers[1]

    def _let_in(self, numbers: Any) -> bool:
        """Let workers work for the server; RETURNS whether all can."""
        mapping = None if self.memory is None else self.memory.mapping
        first = self.account.saved["ledger"]["first"]
        given = (self.server, self.runner.n_microbatches, mapping, self.origin, first)
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

    def start_epoch(self, epoch: int) -> None:
        """See ``StatelessWorker.start_epoch``."""

        def attempt() -> None:
            first = self._ask("start_epoch")
            self.origin = self.team.each("start_epoch", epoch, first)[0]
            self.account.start_epoch(self._ask("snapshot"))

        self.surely(attempt)
        self._is_over = False

    def restore(self, origin: Mapping[str, Any], ledger: Mapping[str, Any]) -> None:
        """Go on with these units of the epoch that began there."""
        self.origin = dict(origin)
        saved = {**self.account.saved, "ledger": dict(ledger)}
        self.account.save(saved)
        self._is_over = False

        def attempt() -> None:
            self._ask("restore", saved)
            self.team.each("go_to", self.origin, ledger["first"])

        self.surely(attempt)

    def restore_schedules(self, states: Mapping[str, Any]) -> None:
        """See ``GradientServer``."""

        def attempt() -> None:
            self._ask("restore_schedules", states)
            self._save()

        self.surely(attempt)

    # --- steps ----------------------------------------------------------------------------

    def take(self, room: float) -> Told:
        """What has come of steps, after a while."""
        try:
            self._ask("end_at", self.account.n_told + int(min(room, 1 << 40)))
            if not self.busy:
                self._take_in()
                self._send_out()
            return self._listen(TAKE_SECONDS)
        except Died as death:
            self.recover(death)
            self._is_over = False
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
        self._is_over = told.is_over
        n_since = told.version - self.account.saved["version"]
        if n_since >= self.runner.settings["snapshot_every"]:
            self.surely(self._save)
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
        self.runner.tell(rates, self._stale)

    def settle(self) -> Told:
        """Wait until nobody is at work."""
        made: List[Made] = []
        while True:
            try:
                self._ask("end_at", 0)
                if self.account.owed and not self.busy:
                    self._take_in()
                    self._send_out()
                if not self.busy and not self.account.owed:
                    self._save()
                    break
                made += self._listen(TAKE_SECONDS).made
            except Died as death:
                self.recover(death)
        self.runner.take_over(self.account.saved)
        return NOTHING._replace(made=made, is_over=self._is_over)

    # --- who dies -------------------------------------------------------------------------

    def snapshot(self) -> Dict[str, Any]:
        """The last one, which is how it is when nobody is at work."""
        return self.account.saved

    def _replace(self, death: Died) -> str:
        if death.workers:
            self.team.remove(death.workers)
            # Numbers of the others have changed.
            self._call_back()
            self._renumber()
            self._take_in()
            return f"worker {death.names} died"
        self._call_back()
        self.account.died()
        self._launch_server()
        self._begin_server()
        self._renumber()
        version = self.account.saved["version"]
        return f"the server died; another one goes on from step {version:,}"

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
            self._let_in(range(len(self.team.actors)))

    def _take_in(self) -> None:
        """Let in those that have started, and start those that are missing."""
        team = self.team
        n_before = len(team.actors)
        if team.actors:
            team.join()
        self._fill_up()
        if len(team.actors) > n_before:
            self._let_in(range(n_before, len(team.actors)))

    def _to_evaluate(self, weights: Any) -> Any:
        return self.ray.put(weights)

    def end(self) -> None:
        self.team.end()
        if self.server is not None:
            self.ray.kill(self.server)
        if self.memory is not None:
            self.memory.close()
        self.cluster.close()
