"""The server and the workers of asynchronous training, in processes that Ray watches."""

import time
from collections import Counter
from typing import Any, Dict, List, Mapping, Optional

from ...teachers import Teacher
from ...training.log_rows import STALENESS
from ..mapped_arrays import MappedArrays
from .account import Account
from .gradient_server import ServerReport, UnitReport
from .ray_runner import RayRunner
from .remote_crew import RemoteCrew
from .server_actor import ServerActor
from .server_link import server_layout
from .shared_memory import shared_memory
from .team import Died

# How long ``take`` waits for steps before the training loop checks the time again.
TAKE_SECONDS = 0.2


def n_shares(teacher: Teacher, n_workers: int) -> int:
    """Return the number of shares of an epoch: ``n_workers`` if a task is a stream that can be read
    in sections, so that workers read less; else 1, and each worker forms all batches."""
    for task in teacher.by_task().values():
        order: Any = task.order
        if order.share_of(0, n_workers, reads_apart=True).data is not order.data:
            return n_workers
    return 1


class RemoteServer(RemoteCrew):
    """Run a gradient server, and workers that send it gradients. If a worker dies, another one
    trains on its unit and continues its share; if the server dies, a new one resumes from the last
    snapshot.

    runner (RayRunner): The runner that uses this object.
    teacher (Teacher): Teacher of the training data.
    bound (int): Maximum age of a gradient, in versions of the weights.
    first (Mapping[str, Any]): Snapshot that the server begins with.
    busy (Dict[ObjectRef, int]): Calls that have not returned, and the numbers of their workers.
    n_shares (int): Number of shares of the data, each of which one worker reads.
    is_over (bool): Whether the epoch is over, as far as is known.
    """

    def __init__(self, runner: RayRunner, teacher: Teacher, bound: int, first: Dict[str, Any]):
        self.bound, self.account = bound, Account(first)
        self.n_shares = n_shares(teacher, runner.num_workers)
        self.busy: Dict[Any, int] = {}
        self.server: Any = None
        self._is_set_up = False
        self.memory: Optional[MappedArrays] = None
        # Where the epoch began (``GradientServer.start_epoch``).
        self.origin: Dict[str, Any] = {}
        self.is_over = True
        self._heard = self._told_at = time.monotonic()
        self._examples: Counter = Counter()  # By worker, since ``_told_at``.
        self._stale = ""
        super().__init__(runner, teacher)

    def _begin(self) -> None:
        self._launch_server()  # The server and the workers start at the same time.
        super()._begin()
        self._set_up()

    def _launch_server(self) -> None:
        self.server = self.cluster.start(ServerActor, n_cpus=0, n_gpus=0, at_once=1)
        self._made = self.server.call.remote("make", self.recipe)

    def _set_up(self) -> None:
        """Start a new server from the account's snapshot, and connect all workers with it."""
        parameters: Any = self.learner.parameters
        n, n_workers = len(self.learner.weights), self.runner.num_workers
        layout = server_layout(n, parameters.stretches, n_workers)
        self._is_set_up = False
        self.server_pid: int = self._sure(self._made)
        self._close()
        plane = self.runner.settings["plane"]
        self.memory = shared_memory(plane, self.team, layout, self._meet)
        if self.memory is None:
            self._meet(None)
        self._is_set_up = True

    def _meet(self, memory: Optional[MappedArrays]) -> bool:
        """Connect server and workers, and return whether all of them can open the memory."""
        mapping = None if memory is None else memory.mapping
        beginning = (*self.account.start(), self.bound, self.runner.num_workers, mapping)
        joining = (self.server, self.runner.n_microbatches, mapping, self.origin)
        numbers = list(range(len(self.team.actors)))
        can_open = self._ask("begin", *beginning)
        return can_open and all(self.team.each("join_server", numbers, *joining))

    def _begin_again(self) -> None:
        """Connect the current workers with the server, after busy workers have finished their
        units."""
        if self._is_set_up:
            self._ask("end_at", 0)
            self._come_back()
            self._save()
        self._set_up()

    def _ask(self, name: str, *given: Any) -> Any:
        """Call a method of the server, and return its result.

        RAISES (Died): If the server is gone.
        """
        return self._sure(self.server.call.remote(name, *given))

    def _sure(self, answer: Any) -> Any:
        """Wait for a call of the server, and return its result.

        RAISES (Died): If the server is gone.
        """
        for _ in self.team.ended({answer: 0}):
            pass
        return self.team.answer(answer, 0, is_server=True)

    # --- epochs ---------------------------------------------------------------------------

    def start_epoch(self, epoch: int) -> None:
        """Begin an epoch (see ``GradientServer.start_epoch``)."""

        def attempt() -> None:
            self.origin = self._ask("start_epoch", epoch, self.n_shares)
            self.account.start_epoch(self._ask("snapshot"))

        self.surely(attempt)
        self.surely(lambda: self.team.each("go_to", self.origin))
        self.is_over = False

    def state(self) -> Dict[str, Any]:
        """Return the position in the epoch, as the arguments of ``restore``. Call this after
        ``settle``, which gets the current ledger from the server."""
        return {"origin": self.origin, "ledger": self.account.saved["ledger"]}

    def restore(self, origin: Mapping[str, Any], ledger: Mapping[str, Any]) -> None:
        """Resume the epoch that began at ``origin``, with the units of ``ledger``."""
        self.origin = dict(origin)
        self.account.save({**self.account.saved, "ledger": dict(ledger)})
        self.is_over = False

        def attempt() -> None:
            self._ask("restore_ledger", ledger)
            self.team.each("go_to", self.origin)

        self.surely(attempt)

    def restore_schedules(self, states: Mapping[str, Any]) -> None:
        """Take over changed schedules (see ``GradientServer.restore_schedules``)."""

        def attempt() -> None:
            self._ask("restore_schedules", states)
            self._save()

        self.surely(attempt)

    # --- steps ----------------------------------------------------------------------------

    def take(self, room: float) -> List[UnitReport]:
        """Wait for a moment, and return the reports of new units.

        room (float): Largest number of steps to make.
        """
        try:
            self._ask("end_at", self.account.n_told + int(min(room, 1 << 40)))
            if not self.busy or self.team.has_started():
                self._take_in()
                self._send_out()
            return self._listen(TAKE_SECONDS)
        except Died as death:
            self.recover(death)
            self.is_over = False
            return []

    def _send_out(self) -> None:
        for number, actor in enumerate(self.team.actors):
            if number not in self.busy.values():
                self.busy[actor.call.remote("work")] = number
        self._heard = time.monotonic()

    def _listen(self, seconds: float) -> List[UnitReport]:
        """Return the new reports, and remove calls that have returned from ``busy``."""
        done = self.team.look(self.busy, self._heard, seconds)
        for ref in done:
            number = self.busy.pop(ref)
            if not self.team.answer(ref, number):
                raise Died([], "no worker can reach it", is_server=True)
        told: ServerReport = self._ask("take")
        if told.made or done:
            self._heard = time.monotonic()
        made = self.account.new(told)
        self.is_over = told.is_over
        n_since = told.version - self.account.saved["version"]
        if n_since >= self.runner.settings["snapshot_every"]:
            self.surely(self._save)
        return made

    def _save(self) -> None:
        self.account.save(self._ask("snapshot"))

    def tell(self, steps: List[UnitReport]) -> None:
        """Update the status line with the speeds of workers and the last staleness."""
        now = time.monotonic()
        for made in steps:
            self._examples[made.worker] += made.report.examples
            for name in made.report.counts:
                if name.startswith(STALENESS):
                    self._stale = f"staleness {name[len(STALENESS) :]}"
        since = now - self._told_at
        if since < TAKE_SECONDS:
            return
        numbers = range(len(self.team.actors))
        rates = [self._examples[worker] / since for worker in numbers]
        self._examples, self._told_at = Counter(), now
        self.runner.tell(rates, self._stale)

    def settle(self) -> List[UnitReport]:
        """Wait until no worker is busy, take over the weights and the optimizer's state, and return
        the reports of new units."""
        made: List[UnitReport] = []
        while True:
            try:
                self._ask("end_at", 0)
                if self.account.owed and not self.busy:
                    self._take_in()
                    self._send_out()
                if not self.busy and not self.account.owed:
                    self._save()
                    break
                made += self._listen(TAKE_SECONDS)
            except Died as death:
                self.recover(death)
        self.runner.take_over(self.account.saved, {})
        return made

    # --- deaths ---------------------------------------------------------------------------

    def _replace(self, death: Died) -> str:
        if death.is_server:
            self.team.kill(self.server)  # The server may only be unreachable.
            self._come_back()
            self.account.died()
            self._launch_server()
            self._set_up()
            version = self.account.saved["version"]
            return f"the server died; a new one resumed from step {version:,}"
        self.team.remove(death.workers)
        self._fill_up()
        self._begin_again()
        return f"{death.who} died"

    def _come_back(self) -> None:
        """Wait until all calls of workers have ended, by a result or by a death."""
        for _ in self.team.ended(self.busy):
            pass
        self.busy = {}

    def _take_in(self) -> None:
        """Take in workers that have started, and start missing ones."""
        n_before = len(self.team.actors)
        self.team.join()
        self._fill_up()
        if len(self.team.actors) > n_before:
            self._begin_again()

    def _to_evaluate(self, weights: Any) -> Any:
        return self.ray.put(weights)

    def _close(self) -> None:
        if self.memory is not None:
            self.memory.close()
            self.memory = None

    def end(self) -> None:
        self.team.kill(self.server)
        super().end()
