"""Asynchronous training: each gradient is applied when it arrives."""

import time
from collections import Counter
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ...config import build_block
from ...errors import ConfigError, Problem
from ...optimizers.lazy_adam import LazyAdam
from ...optimizers.shared_state import settings_of
from ...protocol import StepReport
from ...teachers import Teacher
from ...training.progress import STALENESS
from ..shared_arrays import SharedMemory, private_arrays
from ..stale_steps import describe_stale
from .actor import WorkerActor
from .async_worker import AsyncWorker
from .gradient_server import GradientServer, LearnedUnit, async_layout
from .ledger import Ledger
from .pace import Pace
from .ray_runner import RayRunner
from .workers import Died

# How long ``take`` waits for steps before the training loop checks the time again.
TAKE_SECONDS = 0.2
# A snapshot is made after this many times the duration of the last one.
PAUSE_FACTOR = 20


class AsyncRunner(RayRunner):
    """Train asynchronously (see ``build_ray``): one server holds the weights; workers get units of
    work from the server, one after the other, and return gradients. The steps that the training
    loop knows are those in the last snapshot of the server. So if the server dies, a new one
    resumes from this snapshot, and each unit still counts once.

    server (Any): The server, or its actor.
    saved (Dict[str, Any]): The last snapshot (``GradientServer.snapshot``).
    origin (Dict[str, Any]): Beginning of the epoch (``GradientServer.start_epoch``).
    n_shares (int): Number of shares of the data, each of which one worker reads.
    busy (Dict[ObjectRef, int]): Calls that have not returned, and the numbers of their workers.
    """

    harmless = (*RayRunner.harmless, "staleness")
    server: Any = None

    def _begin(self, teacher: Teacher) -> None:
        server = {"version": 0, "n_dropped": 0, "ledger": Ledger().state(), "is_over": True}
        self.saved: Dict[str, Any] = {**server, **self.snapshot()}
        self.origin: Dict[str, Any] = {}
        self.n_shares = n_shares(teacher, self.n_workers)
        self.busy: Dict[Any, int] = {}
        self.pace = Pace()
        # Results of units that are in a snapshot but not reported yet, with the numbers of their
        # workers.
        self._made: List[Tuple[int, LearnedUnit]] = []
        self._examples: Counter = Counter()  # By worker, since ``_reported_at``.
        self._heard = self._reported_at = time.monotonic()
        self._next_save, self._is_connected = 0.0, False
        self._is_saved = False  # Whether the last snapshot has all steps.
        if self.workers is None:
            self.worker = AsyncWorker(self.experiment, teacher, self.n_microbatches)
        else:
            self._start_server()  # The server and the workers start at the same time.
            self.workers.join(self.num_workers)
        self._connect()
        optimizer = self.experiment.optimizer
        if type(optimizer) is LazyAdam:
            if line := describe_stale(settings_of(optimizer), self.n_workers):
                self.note(line)

    @property
    def bound(self) -> int:
        """Maximum age of a gradient, in versions of the weights."""
        return self.n_workers - 1 + self.settings["staleness"]

    def _start_server(self) -> None:
        self.server = self.workers.cluster.start(WorkerActor, n_cpus=0, n_gpus=0, at_once=1)
        # The server is on the host, and needs no data.
        recipe = self.workers.recipe._replace(data=None, gpu_id=-1)
        self._server_made = self.server.call.remote("make", recipe)

    def _connect(self) -> None:
        """Make the server resume from the last snapshot, and connect all workers with it."""
        segments = self.learner.parameters.segments  # type: ignore[attr-defined]
        layout = async_layout(segments, self.n_workers)
        if self.workers is None:
            arrays, ops = private_arrays(layout), self.worker.vectors.ops
            optimizer = build_block(self.experiment.checked, "training.optimizer")
            self.server = GradientServer(segments, optimizer, ops, arrays, self.bound)
            self.server.restore(self.saved)
            self.worker.connect(0, arrays, self.server.exchange)
            self.worker.go_to(self.origin)
            return
        self._is_connected = False
        self.server_pid: int = self._server_result(self._server_made)
        self.share(layout)
        self._call_server("serve", self.n_workers, self.bound, self.saved)
        numbers = list(range(len(self.workers.actors)))
        given = (self.n_workers, self.server, self.n_microbatches, self.origin)
        self.workers.each("connect_async", numbers, *given)
        self._is_connected = True

    def _open(self, memory: Optional[SharedMemory]) -> bool:
        return self._call_server("open", memory) and super()._open(memory)

    def _reconnect(self) -> None:
        """Connect the current workers, after busy workers have finished their units."""
        if self._is_connected:
            self._call_server("end_at", 0)
            self._wait_for_calls()
            self._save()
        self._connect()

    def _wait_for_calls(self) -> None:
        """Wait until all calls of workers have ended, by a result or by a death."""
        for _ in self.workers.ended(self.busy):
            pass

    def _call_server(self, name: str, *given: Any) -> Any:
        """Call a method of the server, and return its result.

        RAISES (Died): If the server is gone.
        """
        if self.workers is None:
            return getattr(self.server, name)(*given)
        return self._server_result(self.server.call.remote(name, *given))

    def _server_result(self, answer: Any) -> Any:
        """Wait for a call of the server, and return its result.

        RAISES (Died): If the server is gone.
        """
        ((ref, number),) = self.workers.ended({answer: 0})
        return self.workers.answer(ref, number, is_server=True)

    def _save(self) -> None:
        """Make a snapshot."""
        began = time.monotonic()
        self.saved, made = self._call_server("snapshot")
        self._made += made
        self._is_saved = not self.busy
        self._next_save = time.monotonic() + PAUSE_FACTOR * (time.monotonic() - began)

    def _retry(self, attempt: Any) -> None:
        """Call a function, again after each death."""
        attempt() if self.workers is None else self.workers.surely(attempt)

    def go_back(self, death: Died) -> str:
        if not death.is_server:
            self._reconnect()
            return f"{death.who} died"
        self.workers.kill(self.server)  # The server may only be unreachable.
        self._wait_for_calls()
        self._start_server()
        self._connect()
        return f"the server died; a new one resumed from step {self.saved['version']:,}"

    # --- the runner -----------------------------------------------------------------------

    def start_epoch(self, epoch: int) -> None:
        def start() -> None:
            self.origin = self._call_server("start_epoch", epoch, self.n_shares)
            self._save()

        self._retry(start)
        self._retry(self._move_to_origin)

    def _move_to_origin(self) -> None:
        if self.workers is None:
            self.worker.go_to(self.origin)
        else:
            self.workers.each("go_to", self.origin)

    def epoch_done(self) -> bool:
        return self.saved["is_over"] and not self.busy

    def take(self, step: int, room: float) -> List[StepReport]:
        self._send_schedule_states(self._send_schedules)
        if self.workers is None:
            self._call_server("end_at", self.saved["version"] + self.pace.begin(room))
            self._is_saved = False
            self.worker.work()
            self._save()
            self.pace.end(len(self._made))
            return self._reports()
        try:
            version = self._call_server("end_at", self.saved["version"] + int(min(room, 1 << 40)))
            if self.workers.has_started():
                self.workers.join()
                self._reconnect()
            if not self.busy:
                self._start_work()
            self._collect_ended()
            n_since = version - self.saved["version"]
            is_late = time.monotonic() > self._next_save
            if is_late or not self.busy or n_since >= self.settings["snapshot_every"]:
                self._save()
        except Died as death:
            self.workers.recover(death)
        return self._reports()

    def _send_schedules(self, states: Mapping[str, Any]) -> None:
        def send() -> None:
            self._call_server("restore_schedules", states)
            self._save()

        self._retry(send)

    def _start_work(self) -> None:
        self._is_saved = False
        for number, actor in enumerate(self.workers.actors):
            self.busy[actor.call.remote("work")] = number
        self._heard = time.monotonic()

    def _collect_ended(self) -> None:
        """Wait a moment, and remove calls that have returned from ``busy``."""
        for ref in self.workers.look(self.busy, self._heard, TAKE_SECONDS):
            self._heard, number = time.monotonic(), self.busy.pop(ref)
            if not self.workers.answer(ref, number):
                raise Died([], "no worker can reach it", is_server=True)

    def _reports(self) -> List[StepReport]:
        """Return the reports of new steps, and update the status line."""
        made, self._made = self._made, []
        self.see_held(unit.gpu_bytes for _, unit in made)
        steps: List[StepReport] = []
        for worker, unit in made:
            if unit.report is not None and unit.report.examples:
                steps.append(unit.report)
                self._examples[worker] += unit.report.examples
        self._advance_optimizer(len(steps))
        now = time.monotonic()
        since = now - self._reported_at
        if steps and self.workers is not None and since > TAKE_SECONDS:
            rates = [self._examples[n] / since for n in range(len(self.workers.actors))]
            ages = [name for name in steps[-1].counts if name.startswith(STALENESS)]
            self.tell(rates, *(f"staleness {age[len(STALENESS) :]}" for age in ages))
            self._examples, self._reported_at = Counter(), now
        return steps

    def settle(self) -> List[StepReport]:
        def settle() -> None:
            self._call_server("end_at", 0)
            while self.busy:
                self._collect_ended()
            if not self._is_saved:  # A snapshot of a large model takes long.
                self._save()

        self._retry(settle)
        self.take_over(self.saved, {})
        return self._reports()

    def state(self) -> Dict[str, Any]:
        # ``settle`` has made a snapshot.
        return {"origin": self.origin, "ledger": self.saved["ledger"], "unit": self.n_microbatches}

    def restore(self, state: Mapping[str, Any]) -> None:
        if state.get("unit") != self.n_microbatches:
            text = f"[runner] a step has {self.n_microbatches} microbatches"
            was = f"had {state['unit']}" if "unit" in state else "was synchronous"
            text += f", but the saved run {was}"
            hint = "set mode and microbatches as in the saved run, or start from scratch"
            raise ConfigError([Problem("", text, hint)])
        self.origin = dict(state["origin"])
        self.saved = {**self.saved, "ledger": state["ledger"], "is_over": False}
        self._retry(self._connect)

    def end(self) -> None:
        if self.workers is not None:
            self.workers.kill(self.server)
        super().end()


def n_shares(teacher: Teacher, n_workers: int) -> int:
    """Return the number of shares of an epoch: ``n_workers`` if a task is a stream that can be read
    in sections, so that workers read less; else 1, and each worker forms all batches."""
    for task in teacher.by_task().values():
        order: Any = task.order
        if order.share_of(0, n_workers, reads_apart=True).data is not order.data:
            return n_workers
    return 1
