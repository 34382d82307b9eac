"""Ray as we use it: one cluster, found or made, and actors in it that are watched."""

import os
import shutil
import signal
import socket
import tempfile
import time
from contextlib import suppress
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ...errors import DialogError, MissingPackageError, WorkerError
from ...loader.starting import SIGNALS
from ...training.interruption import Interrupted, Interruption
from ..crew import MAX_END_SECONDS, MAX_WAIT_SECONDS, Failure
from .actor import WorkerActor

# How often one looks, while waiting, whether the run is to end; and for how long one waits for
# processors that others are about to give back.
LOOK_SECONDS, FREE_SECONDS = 0.5, 10.0
# How long a cluster may take to answer at all.
CONNECT_SECONDS = 10.0
# Ray gives its own processes 30 seconds to come up, which may be too few where others work.
MAX_STARTS = 3
# Ray says much that no user of ours can use.
QUIET = {"RAY_SCHEDULER_EVENTS": "0", "RAY_USAGE_STATS_ENABLED": "0"}


class Died(Exception):
    """Processes of workers are gone.

    workers (Sequence[int]): Their numbers.
    """

    def __init__(self, workers: Sequence[int], text: str):
        super().__init__(text)
        self.workers = list(workers)

    @property
    def first(self) -> int:
        """The number to blame, if one is needed."""
        return self.workers[0] if self.workers else 0

    @property
    def names(self) -> str:
        """Their numbers, to read."""
        return ", ".join(map(str, self.workers))


def missing_ray() -> MissingPackageError:
    """The error where the package is not installed."""
    return MissingPackageError("ray", "ray", '[runner] @runners = "thincdialog.Ray.v1"')


def import_ray() -> Any:
    """The package.

    RAISES (MissingPackageError): If it is not installed.
    """
    try:
        import ray
    except ImportError:
        raise MissingPackageError(
            "ray", "ray", '[runner] @runners = "thincdialog.Ray.v1"'
        ) from None
    return ray


def see_that_it_answers(address: str) -> None:
    """Ray itself would try for minutes, without a word.

    address (str): Of a cluster; whatever is not HOST:PORT is left to Ray.
    RAISES (DialogError): If nobody listens there.
    """
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise DialogError(f"[runner] no cluster answers at {address!r}: {error}") from None


class RayCluster:
    """The cluster at an address; without one, that of this process, or a new one, which is
    gone with it.

    address (Optional[str]): Of an existing cluster ("auto" for the one on this machine).
    num_cpus (Optional[int]): Of a new one; more than there are, if they are to be shared.
    object_store_memory (Optional[int]): Of a new one, in bytes.
    RAISES (DialogError): If Ray does not start, or cannot be reached.
    """

    def __init__(
        self,
        address: Optional[str],
        num_cpus: Optional[int],
        object_store_memory: Optional[int],
    ):
        self.ray = import_ray()
        self._is_ours, self._folder = False, ""
        if self.ray.is_initialized():
            return
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        # Ray takes the signals; they are the run's.
        before = {number: signal.getsignal(number) for number in SIGNALS}
        try:
            if address is not None:
                see_that_it_answers(address)
                self._init(address=address)
            else:
                self._start(num_cpus, object_store_memory)
        except (ConnectionError, ValueError, RuntimeError, OSError) as error:
            what = f"no cluster answers at {address!r}" if address else "Ray does not start"
            reason = " ".join(str(error).split())
            raise DialogError(f"[runner] {what}: {reason}") from None
        finally:
            for number, handler in before.items():
                with suppress(ValueError):  # Not in the main thread.
                    signal.signal(number, handler)
        self._is_ours = True
        # Ray writes to stdout that workers die; the run says so itself.
        with suppress(ImportError, AttributeError):
            from ray._private.ray_logging import global_worker_stdstream_dispatcher

            global_worker_stdstream_dispatcher.remove_handler("ray_print_logs")

    def _start(self, num_cpus: Optional[int], object_store_memory: Optional[int]) -> None:
        """Start a cluster of this process; what came up of one that did not is gone."""
        for start in range(1, MAX_STARTS + 1):
            # Its own folder, short, as sockets lie there, which goes with the run.
            self._folder = tempfile.mkdtemp(prefix="td-ray-", dir="/tmp")
            try:
                self._init(
                    address="local",
                    num_cpus=num_cpus,
                    object_store_memory=object_store_memory,
                    include_dashboard=False,
                    _temp_dir=self._folder,
                )
                return
            except BaseException as error:
                self._kill_started()
                self._remove_folder()
                # Ray has no class of its own for this one.
                if type(error) is not Exception:
                    raise
                if start == MAX_STARTS:
                    raise RuntimeError(f"{error} Tried {start} times.") from None

    def _init(self, **options: Any) -> None:
        self.ray.init(
            log_to_driver=False,
            logging_level="ERROR",
            configure_logging=False,
            ignore_reinit_error=True,
            **options,
        )

    def _kill_started(self) -> None:
        """Kill the processes of a cluster that is not to be: Ray would let them run on."""
        import psutil  # Comes with Ray.

        started = []
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                if any(self._folder in argument for argument in child.cmdline()):
                    child.kill()
                    started.append(child)
        psutil.wait_procs(started, timeout=CONNECT_SECONDS)

    def close(self) -> None:
        """Leave the cluster; one that was made goes."""
        if self._is_ours:
            before = {number: signal.getsignal(number) for number in SIGNALS}
            self.ray.shutdown()
            for number, handler in before.items():
                with suppress(ValueError):
                    signal.signal(number, handler)
            self._is_ours = False
        self._remove_folder()

    def _remove_folder(self) -> None:
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def node(self) -> str:
        """The id of the node that this process is on."""
        return self.ray.get_runtime_context().get_node_id()

    def fitting(self, n_workers: int, n_gpus: float) -> int:
        """How many of so many workers there is room for, as it is now."""
        free = self.ray.available_resources()
        n = min(n_workers, int(free.get("CPU", 0)))
        return min(n, int(free.get("GPU", 0) / n_gpus)) if n_gpus else n

    def check_room(self, n_workers: int, n_gpus: float) -> None:
        """See that all workers find a place: Ray would wait for one without a word.

        n_gpus (float): Of each.
        RAISES (DialogError): If not; it names what is needed and what there is.
        """
        whole = self.ray.cluster_resources()
        needed = {"CPU": float(n_workers), "GPU": n_workers * n_gpus}
        for kind, amount in needed.items():
            there = whole.get(kind, 0.0)
            if amount > there:
                hint = "set num_workers lower, or add nodes"
                if kind == "CPU" and self._folder:
                    hint = f"set num_workers lower, or num_cpus = {n_workers} to share processors"
                raise DialogError(
                    f"[runner] num_workers = {n_workers} needs {amount:g} {kind}s, but the Ray "
                    f"cluster has {there:g}: {hint}."
                )
        until = time.monotonic() + FREE_SECONDS
        while self.fitting(n_workers, n_gpus) < n_workers:
            if time.monotonic() > until:
                free = self.ray.available_resources()
                raise DialogError(
                    f"[runner] num_workers = {n_workers} needs {needed['CPU']:g} CPUs and "
                    f"{needed['GPU']:g} GPUs, but {free.get('CPU', 0):g} and "
                    f"{free.get('GPU', 0):g} of the Ray cluster are free: set num_workers lower, "
                    "or wait until others have ended."
                )
            time.sleep(0.1)

    def start(
        self, kind: type, *given: Any, n_cpus: float, n_gpus: float, is_near: bool, at_once: int
    ) -> Any:
        """A new actor.

        at_once (int): Calls that it carries out side by side.
        is_near (bool): Whether it shall be on this node, if there is room.
        """
        strategies = self.ray.util.scheduling_strategies
        strategy: Any = "DEFAULT"
        if is_near:
            # Soft alone means: elsewhere, if the node is gone; not, if it is full.
            strategy = strategies.NodeAffinitySchedulingStrategy(
                self.node, soft=True, _spill_on_unavailable=True
            )
        options = {"num_cpus": n_cpus, "num_gpus": n_gpus, "max_concurrency": at_once}
        remote = self.ray.remote(kind).options(**options, scheduling_strategy=strategy)
        return remote.remote(*given)


class Team:
    """Actors, one for each worker, which are asked all at once.

    cluster (RayCluster): Where they are.
    interruption (Interruption): Knows whether the run is to end.
    n_workers (int): There will be at most.
    n_gpus (float): Of each.
    """

    def __init__(
        self, cluster: RayCluster, interruption: Interruption, n_workers: int, n_gpus: float
    ):
        self.cluster, self.ray, self.interruption = cluster, cluster.ray, interruption
        self.n_gpus = n_gpus
        # All others may have a message before a worker has joined them.
        self._at_once = n_workers + 8
        self.actors: List[Any] = []
        self._starting: List[Tuple[Any, Any]] = []
        self.pids: List[int] = []
        # Called when one of them is gone, or fails, so that the others do not wait for it.
        self.abort: Any = lambda: None

    def start(self, n_workers: int, recipe: Any, is_near: bool) -> None:
        """Begin to start workers, to stand beside those that are there.

        recipe (ObjectRef): Of a ``Recipe``.
        """
        for _ in range(n_workers):
            actor = self.cluster.start(
                WorkerActor,
                n_cpus=1,
                n_gpus=self.n_gpus,
                is_near=is_near,
                at_once=self._at_once,
            )
            self._starting.append((actor, actor.call.remote("make", recipe)))

    def join(self, seconds: float = 0.0) -> int:
        """Let those stand beside the others that have started.

        seconds (float): How long to wait for all of them.
        RETURNS (int): How many.
        RAISES (WorkerError): If one cannot begin.
        """
        n_before = len(self.actors)
        done = self.started(seconds)
        for actor, ref in [pair for pair in self._starting if pair[1] in done]:
            self._starting.remove((actor, ref))
            try:
                pid = self.ray.get(ref)
            except self.ray.exceptions.RayError:
                continue  # It died; another one may be started in its place.
            if isinstance(pid, Failure):
                raise pid.error(len(self.actors))
            self.actors.append(actor)
            self.pids.append(pid)
        return len(self.actors) - n_before

    def started(self, seconds: float = 0.0) -> List[Any]:
        """Those that ``join`` would let in, or that have failed."""
        pending, done = [ref for _, ref in self._starting], []
        until = time.monotonic() + seconds
        while pending:
            found, pending = self.ray.wait(
                pending, num_returns=len(pending), timeout=min(seconds, LOOK_SECONDS)
            )
            done += found
            if time.monotonic() >= until:
                break
        return done

    @property
    def n_starting(self) -> int:
        """How many are about to start."""
        return len(self._starting)

    def each(self, call: str, *given: Any) -> List[Any]:
        """Call a method of every worker.

        given (Any): For all of them; a list has one for each worker.
        RETURNS (List[Any]): What each gave.
        RAISES (Died): If a process of theirs is gone.
        RAISES (WorkerError): If one fails.
        """
        refs = {}
        for number, actor in enumerate(self.actors):
            own = [each[number] if isinstance(each, list) else each for each in given]
            refs[number] = actor.call.remote(call, *own)
        answers = self.wait(refs)
        return [answers[number] for number in range(len(self.actors))]

    def wait(self, refs: Dict[int, Any]) -> Dict[int, Any]:
        """What calls give.

        refs (Dict[int, ObjectRef]): By numbers of workers.
        """
        whose = {ref: number for number, ref in refs.items()}
        answers: Dict[int, Any] = {}
        died: Dict[int, str] = {}
        failed: List[WorkerError] = []
        for ref in self.ended(whose):
            number = whose[ref]
            try:
                answers[number] = self.ray.get(ref)
            except self.ray.exceptions.RayError as error:
                died[number] = " ".join(str(error).split())
            if isinstance(answers.get(number), Failure):
                failed.append(answers[number].error(number))
            if died or failed:
                self.abort()
        if died:
            raise Died(sorted(died), died[min(died)])
        if failed:
            raise failed[0]
        return answers

    def ended(self, whose: Mapping[Any, int]) -> Iterator[Any]:
        """Calls as they end. Whoever waits for one waits here, in bounded time.

        whose (Mapping[ObjectRef, int]): The worker of each.
        RAISES (WorkerError): If none ends in time.
        RAISES (Interrupted): If none ends in time after a signal.
        """
        pending, heard, end = list(whose), time.monotonic(), float("inf")
        while pending:
            done, pending = self.ray.wait(pending, num_returns=1, timeout=LOOK_SECONDS)
            yield from done
            now = time.monotonic()
            if done or not pending:
                heard = now
                continue
            number = self.interruption.received
            if number is not None:
                end = min(end, now + MAX_END_SECONDS)
                if now >= end:
                    raise Interrupted(number)
            if now - heard > MAX_WAIT_SECONDS:
                text = f"no answer within {MAX_WAIT_SECONDS:g} seconds: it hangs, or is very slow"
                raise WorkerError(min(whose[ref] for ref in pending), text)

    def remove(self, numbers: Sequence[int]) -> None:
        """Forget those that are gone."""
        for number in sorted(numbers, reverse=True):
            self._kill(self.actors.pop(number))
            self.pids.pop(number)

    def _kill(self, actor: Any) -> None:
        with suppress(Exception):
            self.ray.kill(actor, no_restart=True)

    def end(self) -> None:
        """Let all of them go."""
        self.abort()
        for actor in (*self.actors, *(actor for actor, _ in self._starting)):
            self._kill(actor)
        self.actors, self._starting = [], []
