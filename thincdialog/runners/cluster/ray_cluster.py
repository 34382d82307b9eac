"""Ray as we use it: one cluster, found or made, with room for workers."""

import logging
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from typing import Any, Dict, Iterator, List, Optional

from ...errors import DialogError, MissingPackageError
from ...signals import SIGNALS

# How long one waits for processors that others are about to give back.
FREE_SECONDS = 10.0
# How long a cluster may take to answer at all.
CONNECT_SECONDS = 10.0
# Ray gives its own processes 30 seconds to come up, which may be too few where others work.
MAX_STARTS = 3
# Letters of the folder for temporary files: sockets lie in it, whose paths may have 107.
LONGEST_PLACE = 24
# How a client of gRPC, which a cluster speaks, begins to talk HTTP/2: its server answers with a
# frame of settings.
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
SETTINGS_FRAME = 4
# Ray says much that no user of ours can use.
QUIET = {"RAY_SCHEDULER_EVENTS": "0", "RAY_USAGE_STATS_ENABLED": "0"}


def missing_ray() -> MissingPackageError:
    """The error where the package is not installed."""
    need = '[runner] @runners = "thincdialog.Ray.v1" with num_workers above 0'
    return MissingPackageError("ray", "ray", need)


def import_ray() -> Any:
    """The package.

    RAISES (MissingPackageError): If it is not installed.
    """
    try:
        import ray
    except ImportError:
        raise missing_ray() from None
    return ray


def is_place(address: str) -> bool:
    """Whether it is HOST:PORT."""
    host, _, port = address.rpartition(":")
    return bool(host) and "/" not in host and port.isdigit()


@contextmanager
def signals_held() -> Iterator[None]:
    """A stretch of Ray's code that a signal must not leave half done, as the process would crash:
    it comes behind it. Nor does Ray take the signals for itself, which are the run's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: List[int] = []
    known = {number: signal.getsignal(number) for number in SIGNALS}
    before = {n: each for n, each in known.items() if each not in (None, signal.SIG_IGN)}
    set_handler: Any = signal.signal
    for number in before:
        set_handler(number, lambda number, frame: received.append(number))

    def set_others(number: int, handler: Any) -> Any:
        return known[number] if number in known else set_handler(number, handler)

    signal.signal = set_others  # type: ignore[assignment]
    try:
        yield
    finally:
        signal.signal = set_handler
        for number, handler in before.items():
            set_handler(number, handler)
        for number in received:
            signal.raise_signal(number)


def see_that_it_answers(address: str) -> None:
    """Ray itself would try for minutes or for ever, without a word.

    address (str): Of a cluster; whatever is not HOST:PORT is left to Ray.
    RAISES (DialogError): If nobody listens there, or not a cluster.
    """
    if address in ("local", ""):  # To Ray, a new one.
        text = f"[runner] address = {address!r} is of no cluster: leave it out to start one"
        raise DialogError(f"{text} that ends with the run.")
    if not is_place(address):
        return
    host, _, port = address.rpartition(":")
    try:
        place = (host.strip("[]"), int(port))
        with socket.create_connection(place, CONNECT_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS") == "1":  # It says nothing to who does not encrypt.
                return
            connection.sendall(GREETING)
            answer = connection.makefile("rb").read(4)
    except (OSError, OverflowError) as error:
        raise DialogError(f"[runner] no cluster answers at {address!r}: {error}") from None
    if answer[3:] != bytes([SETTINGS_FRAME]):
        raise DialogError(f"[runner] what listens at {address!r} is no Ray cluster.")


def use_token() -> None:
    """Ray asks for a token unless told otherwise, and takes that of this machine only if it finds
    the cluster by itself. Which it says in a line of its own."""
    logging.getLogger("ray._private.authentication").setLevel(logging.ERROR)
    with suppress(ImportError):
        from ray._private.authentication import authentication_token_setup as setup

        setup.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


class RayCluster:
    """The cluster at an address; without one, that of this process, or a new one, which is
    gone with it.

    address (Optional[str]): Of an existing cluster ("auto" for the one on this machine).
    num_cpus (Optional[int]): Of a new one; more than there are, if they are to be shared.
    object_store_memory (Optional[int]): Of a new one, in bytes.
    plane (str): Of the run. "shm": workers are on this node only; else they may be elsewhere,
        if there is no room ("auto"), or as Ray likes ("store").
    folder (str): For temporary files, of a new one, with which it goes; else "".
    RAISES (DialogError): If Ray does not start, or cannot be reached.
    """

    def __init__(
        self,
        address: Optional[str],
        num_cpus: Optional[int],
        object_store_memory: Optional[int],
        plane: str = "auto",
    ):
        self.ray = import_ray()
        self.is_here_only, self.is_near = plane == "shm", plane != "store"
        self._is_ours, self.folder = False, ""
        self._printing: Any = None
        if self.ray.is_initialized():
            return
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        use_token()
        try:
            if address is not None:
                see_that_it_answers(address)
                try:
                    self._init(address=address)
                except BaseException:
                    self.ray.shutdown()
                    raise
            else:
                self._start(num_cpus, object_store_memory)
        except (ConnectionError, ValueError, RuntimeError, OSError) as error:
            what, reason = "Ray does not start", " ".join(str(error).split())
            if address is not None:
                what = f"cannot join the cluster at {address!r}"
                if not is_place(address):
                    reason += ' (Give HOST:PORT, or "auto".)'
                else:
                    reason += " (If it asks for a token, this machine needs the same: docs/ray.md.)"
            raise DialogError(f"[runner] {what}: {reason}") from None
        self._is_ours = True
        # Ray writes to stdout that workers die; the run says so itself.
        with suppress(AttributeError):  # Another version's own.
            self._printing = self.ray._private.worker.print_to_stdstream
            self.ray._private.worker.print_to_stdstream = lambda *told, **more: None

    def _start(self, num_cpus: Optional[int], object_store_memory: Optional[int]) -> None:
        """Start a cluster of this process; what came up of one that did not is gone."""
        for start in range(1, MAX_STARTS + 1):
            # Its own folder, which goes with the run.
            place = tempfile.gettempdir()
            place = place if len(place) <= LONGEST_PLACE else "/tmp"
            self.folder = tempfile.mkdtemp(prefix="td-ray-", dir=place)
            try:
                self._init(
                    address="local",
                    num_cpus=num_cpus,
                    object_store_memory=object_store_memory,
                    include_dashboard=False,
                    _temp_dir=self.folder,
                )
                return
            except BaseException as error:
                with signals_held():
                    started = self._started()
                    self.ray.shutdown()
                    self._kill(started)
                    self._remove_folder()
                # Ray has no class of its own for this one.
                if type(error) is not Exception:
                    raise
                if start == MAX_STARTS:
                    raise RuntimeError(f"{error} Tried {start} times.") from None

    def _init(self, **options: Any) -> None:
        with signals_held():
            self.ray.init(
                log_to_driver=False,
                logging_level="ERROR",
                configure_logging=False,
                ignore_reinit_error=True,
                **options,
            )

    def _started(self) -> List[Any]:
        """The processes of a cluster of ours, and what those have started."""
        import psutil  # Comes with Ray.

        started = []
        for child in psutil.Process().children() if self.folder else ():
            with suppress(psutil.Error):
                if any(self.folder in argument for argument in child.cmdline()):
                    started += [child, *child.children(recursive=True)]
        return started

    def _kill(self, started: List[Any]) -> None:
        """Kill what is left of processes: Ray would let them run on, for a while at least."""
        import psutil

        for process in started:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(started, timeout=CONNECT_SECONDS)

    def close(self) -> None:
        """Leave the cluster; one that was made goes."""
        with signals_held():
            if self._is_ours:
                started = self._started()
                self.ray.shutdown()
                if self._printing is not None:
                    self.ray._private.worker.print_to_stdstream = self._printing
                self._kill(started)
                self._is_ours = False
            self._remove_folder()

    def _remove_folder(self) -> None:
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def node(self) -> str:
        """The id of the node that this process is on."""
        return self.ray.get_runtime_context().get_node_id()

    def _places(self, amounts: Dict[str, Dict[str, float]], n_gpus: float) -> int:
        """Workers that fit: each needs all that it takes on one node."""
        found = 0
        for node, amount in amounts.items():
            if self.is_here_only and node != self.node:
                continue
            n = int(amount.get("CPU", 0))
            if n_gpus:
                n = min(n, _units(amount.get("GPU", 0)) // _units(n_gpus))
            found += n
        return found

    def fitting(self, n_workers: int, n_gpus: float) -> int:
        """How many of so many workers there is room for, as it is now."""
        from ray._private.state import available_resources_per_node

        return min(n_workers, self._places(available_resources_per_node(), n_gpus))

    def check_room(self, n_workers: int, n_gpus: float) -> None:
        """See that all workers find a place: Ray would wait for one without a word.

        n_gpus (float): Of each.
        RAISES (DialogError): If not; it names what is needed and what there is.
        """
        from ray._private.state import total_resources_per_node

        whole = total_resources_per_node()
        where = "this node" if self.is_here_only else "the Ray cluster"
        needed = {"CPU": float(n_workers), "GPU": n_workers * n_gpus}
        for kind, amount in needed.items():
            there = sum(
                amounts.get(kind, 0.0)
                for node, amounts in whole.items()
                if node == self.node or not self.is_here_only
            )
            if amount > there:
                what = "num_gpus_per_worker" if kind == "GPU" else "num_workers"
                hint = f"set {what} lower, or add nodes"
                if kind == "CPU" and self.folder:
                    hint = f"set num_workers lower, or num_cpus = {n_workers} to share processors"
                raise DialogError(
                    f"[runner] num_workers = {n_workers} needs {amount:.10g} {kind}s, but {where} "
                    f"has {there:g}: {hint}."
                )
        n_places = self._places(whole, n_gpus)
        if n_places < n_workers:
            raise DialogError(
                f"[runner] num_workers = {n_workers} needs so many times 1 CPU and {n_gpus:g} GPUs "
                f"of one node, but the nodes of the Ray cluster have {n_places} times as much: set "
                "num_workers lower, or add nodes."
            )
        until = time.monotonic() + FREE_SECONDS
        while (n_free := self.fitting(n_workers, n_gpus)) < n_workers:
            if time.monotonic() > until:
                raise DialogError(
                    f"[runner] num_workers = {n_workers}, but only {n_free} find 1 CPU and "
                    f"{n_gpus:g} GPUs of {where} free: set num_workers lower, or wait until others "
                    "have ended."
                )
            time.sleep(0.1)

    def start(self, kind: type, *, n_cpus: float, n_gpus: float, at_once: int) -> Any:
        """A new actor.

        at_once (int): Calls that it carries out side by side.
        """
        strategies = self.ray.util.scheduling_strategies
        strategy: Any = "DEFAULT"
        if self.is_near:
            # Soft alone means: elsewhere, if the node is gone; not, if it is full.
            soft = not self.is_here_only
            strategy = strategies.NodeAffinitySchedulingStrategy(
                self.node, soft=soft, _spill_on_unavailable=soft
            )
        options = {"num_cpus": n_cpus, "num_gpus": n_gpus, "max_concurrency": at_once}
        if not n_cpus and self.is_near:
            # Ray lets any node place an actor that takes nothing, also one that knows of no other
            # yet: let it take one byte.
            options["memory"] = 1
        remote = self.ray.remote(kind).options(**options, scheduling_strategy=strategy)
        return remote.remote()


def _units(n_gpus: float) -> int:
    """Ray counts shares of GPUs in ten thousandths: 0.6 are three times 0.2."""
    return round(n_gpus * 10_000)
