"""A world of many: each parley is one worker's, and they do not wait for each other."""

import time
from typing import Any, Callable, Dict, List, Mapping, Optional

from ..errors import ConfigError, Problem, ProtocolError, WorkerError
from ..metrics import Metric, merge_reports
from .orders import Orders
from .world import World
from .world_worker import Answer, Parleyed, Workers

# How often one looks, while waiting, whether the run is to end; and how long workers may
# take to stop where it is.
LOOK_SECONDS, SHORT_STOP = 1.0, 1.0


class LateWorkerError(WorkerError):
    """A run was to end, and a worker has not come to the end of what it is at."""


class HogwildWorld(World):
    """Several workers, each with a world and a share of the data of its own, as one world
    (Niu et al. 2011, https://arxiv.org/abs/1106.5730).

    ``parley`` releases one worker for one parley and comes back at once, while workers
    have room; what came of it is in ``finished`` later. ``report`` is that of all workers,
    merged exactly. An error of a worker is raised by the next call that waits; after it,
    only ``shutdown`` is left.

    workers (Workers): From ``thincdialog.parallel``; they end with this world.
    at_once (Optional[int]): How many of them may be at a parley at the same time, 1 or more;
        None for all. The others take turns with them.
    max_wait (float): Seconds without an answer of anybody, while one is due, that are
        taken for a failure.
    is_ending (Callable[[], bool]): Whether the run is to end, as after a signal.
    end_seconds (float): How long workers are waited for, all in all, once it is; then, a
        ``LateWorkerError`` says who is late.
    RAISES (ValueError): If at_once is below 1.
    """

    def __init__(
        self,
        workers: Workers,
        *,
        at_once: Optional[int] = None,
        max_wait: float = 600.0,
        is_ending: Callable[[], bool] = lambda: False,
        end_seconds: float = 30.0,
    ):
        super().__init__([])
        self.workers = workers
        self.max_wait = max_wait
        self.is_ending, self.end_seconds = is_ending, end_seconds
        self._end = float("inf")  # Till when workers are waited for.
        n = workers.n_workers
        self.at_once = n if at_once is None else min(at_once, n)
        if self.at_once < 1:
            raise ValueError(f"at_once is {at_once}, but it must be 1 or more (workers)")
        self._orders = Orders(n, self.at_once)
        self._finished: List[Any] = []
        self._answers: Dict[int, Answer] = {}
        self._failure: Optional[BaseException] = None

    def parley(self, order: Any = None) -> None:
        """Release the worker that has least to do for one parley; waits while all have
        enough of them. An order that meets a worker with nothing left goes to another;
        if nobody has anything left, the epoch is done, and nothing comes of it.

        order (Any): For the worker's ``learn``, such as a step and its learning rate.
        RAISES (ProtocolError): If the epoch is known to be done, or after ``shutdown``.
        RAISES (WorkerError): If a worker has failed.
        """
        self._check("parley")
        if all(self._orders.is_done) and not self.n_running:
            raise ProtocolError(
                "HogwildWorld.parley() was called, but the epoch is done: call start_epoch() first."
            )
        self._collect()
        self._orders.add(order)
        while not self._release():
            time.sleep(self._orders.seconds_to_rest())
            self._await()
            self._collect()

    def _release(self) -> bool:
        """Hand out orders while there is room; whether all have gone (or never will)."""
        while True:
            given = self._orders.hand_out()
            if given is None:
                return self._orders.n_waiting == 0
            worker, order = given
            self._ask(worker, "parley", order)

    @property
    def n_running(self) -> int:
        """Parleys that were released and are not yet answered."""
        return self._orders.n_open

    def finished(self) -> List[Any]:
        """What ``learn`` gave, of the parleys that were answered since the last call, in
        the order in which the answers came; does not wait.

        RAISES (WorkerError): If a worker has failed.
        """
        if not self.is_shut_down:
            self._check("finished")
            self._collect()
            self._release()
        finished, self._finished = self._finished, []
        return finished

    def drain(self) -> None:
        """Wait until nothing is under way.

        RAISES (WorkerError): If a worker has failed.
        """
        self._check("drain")
        while self.n_running:
            self._release()
            if self.n_running:
                self._await()

    def epoch_done(self) -> bool:
        """Whether all workers are through with their shares, and nothing is under way.
        While one is not known to be, this is False, and does not wait."""
        self._check("epoch_done")
        self._collect()
        if not all(self._orders.is_done):
            return False
        self.drain()
        return True

    def start_epoch(self, epoch: int, seed: int) -> None:
        """Begin a pass over the data with all workers, whatever is left of the last one."""
        self._orders.begin(self.ask_all("start_epoch", epoch, seed))

    def report(self) -> Dict[str, Metric]:
        """Metrics of all workers together, since ``reset_metrics``."""
        return merge_reports(*self.ask_all("report"))

    def reset_metrics(self) -> None:
        """Start the metrics of all workers afresh."""
        self.ask_all("reset_metrics")

    def reset(self) -> None:
        """Make all workers drop their conversations."""
        super().reset()
        self._orders.begin(self.ask_all("reset"), is_whole=False)

    def _state(self) -> Dict[str, Any]:
        states = self.ask_all("state")
        if None in states:
            text = "the worlds of its workers cannot be saved in an epoch."
            raise ProtocolError(f"HogwildWorld.state(): {text}")
        return {"workers": states}

    def _restore(self, state: Mapping[str, Any]) -> None:
        states, n = state["workers"], self.workers.n_workers
        if len(states) != n:
            text = f"[hogwild] workers is {n}, but what was saved is of {len(states)}"
            hint = f"set it to {len(states)}, or start anew"
            raise ConfigError([Problem("", text, hint)])
        for worker, own in enumerate(states):
            self._ask(worker, "restore", own)
        self._orders.begin(self._await_all(), is_whole=False)

    def ask_all(self, call: str, *arguments: Any) -> List[Any]:
        """Call a method of every ``WorldWorker``, behind the parleys that are under way.

        call (str): Its name.
        arguments (Any): For it.
        RETURNS (List[Any]): What each gave, in the order of workers.
        RAISES (WorkerError): If a worker has failed.
        """
        self.drain()
        for worker in range(self.workers.n_workers):
            self._ask(worker, call, *arguments)
        return self._await_all()

    def _await_all(self) -> List[Any]:
        """The next answer of every worker."""
        n = self.workers.n_workers
        while len(self._answers) < n:
            self._await()
        values = [self._answers[worker].value for worker in range(n)]
        self._answers = {}
        return values

    def _ask(self, worker: int, call: str, *arguments: Any) -> None:
        try:
            self.workers.ask(worker, call, *arguments)
        except BaseException as error:
            self._failure = error
            raise

    def _await(self) -> None:
        """Take one answer, which must come in time."""
        until = time.monotonic() + self.max_wait
        left = self.max_wait
        while not self._take(min(max(0.0, left), LOOK_SECONDS)):
            if left <= 0:
                self._failure = self._late()
                raise self._failure
            if self._end == float("inf") and self.is_ending():
                self._end = time.monotonic() + self.end_seconds
            left = min(until, self._end) - time.monotonic()

    def _late(self) -> WorkerError:
        due = self._orders.late()
        due = due or [w for w in range(self.workers.n_workers) if w not in self._answers]
        others = f" (nor from {', '.join(map(str, due[1:]))})" if len(due) > 1 else ""
        tail = f"{others}: it hangs, or is very slow"
        if time.monotonic() < self._end:
            return WorkerError(due[0], f"no answer within {self.max_wait:g} seconds{tail}")
        text = f"no answer {self.end_seconds:g} seconds after the run was to end{tail}"
        return LateWorkerError(due[0], text)

    def _collect(self) -> None:
        """Take all answers that are there."""
        while self._take(0.0):
            pass

    def _take(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        try:
            answer = self.workers.wait(seconds)
            while answer is None and time.monotonic() < until:
                answer = self.workers.wait(until - time.monotonic())
        except BaseException as error:  # An interrupt, too: an answer may have gone with it.
            self._failure = error
            raise
        if answer is None:
            return False
        if isinstance(answer.value, Parleyed):
            self._orders.answered(answer.worker, answer.value)
            if answer.value.has_parleyed:
                self._finished.append(answer.value.result)
        else:
            self._answers[answer.worker] = answer
        return True

    def _check(self, call: str) -> None:
        if self.is_shut_down:
            raise ProtocolError(f"HogwildWorld.{call}() was called after shutdown().")
        if isinstance(self._failure, WorkerError):
            raise self._failure
        if self._failure is not None:
            raise ProtocolError(
                f"HogwildWorld.{call}() was called after {type(self._failure).__name__}: only "
                "shutdown() is left."
            )

    def shutdown(self) -> None:
        """End the workers, in bounded time; what they are at is given up."""
        super().shutdown()
        is_ending = self.is_ending()
        try:
            self.workers.stop(SHORT_STOP if is_ending else None)
        except WorkerError:
            if self._failure is None and not is_ending:  # Or it hides why they were stopped.
                raise
