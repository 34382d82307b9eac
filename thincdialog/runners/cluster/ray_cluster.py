"""The Ray cluster that a run joins or starts, and the resources that it has for workers."""

import os
import shutil
import signal
import socket
import tempfile
import threading
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Optional

from ...errors import DialogError, importing
from ...signals import SIGNALS

# What the package ``ray`` is needed for, for the error if it is not installed.
NEED = '[runner] @runners = "thincdialog.Ray.v1" with num_workers above 0'
# How long to wait for processors that other runs are about to release.
FREE_SECONDS = 10.0
# How long to wait for an answer of a cluster.
CONNECT_SECONDS = 10.0
# Longest path, in characters, of the folder for temporary files, because the paths of the sockets
# in it are limited to 107 characters.
LONGEST_PLACE = 24
# Environment variables that switch off messages of Ray that are of no use to a user.
QUIET = {"RAY_SCHEDULER_EVENTS": "0", "RAY_USAGE_STATS_ENABLED": "0"}


def is_place(address: str) -> bool:
    """Return whether an address has the form HOST:PORT."""
    host, _, port = address.rpartition(":")
    return bool(host) and "/" not in host and port.isdigit()


@contextmanager
def own_handlers() -> Iterator[None]:
    """Restore the run's signal handlers at the end of this context, because Ray replaces them."""
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():
                signal.signal(number, handler)


def check_cluster_answers(address: str) -> None:
    """Check that a server answers at an address, because Ray itself would try for minutes.

    address (str): Address of a cluster. If it does not have the form HOST:PORT, only Ray checks it.
    RAISES (DialogError): If nothing answers.
    """
    if address in ("local", ""):  # Ray would start a new cluster.
        text = f"[runner] address = {address!r} is not the address of a cluster: leave it out to "
        raise DialogError(f"{text}start a cluster that ends with the run.")
    if not is_place(address):
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise DialogError(f"[runner] no cluster answers at {address!r}: {error}") from None


class RayCluster:
    """Connect this process to a Ray cluster, and start actors there. A process that is already
    connected keeps its cluster. Otherwise it joins the cluster at the address or, without an
    address, starts a new cluster that ends with this process.

    address (Optional[str]): Address of an existing cluster ("auto" for the one on this machine).
    num_cpus (Optional[int]): CPUs of a new cluster; may be more than the machine has, if workers
        are to share them.
    object_store_memory (Optional[int]): Size of a new cluster's object store, in bytes.
    plane (str): The run's setting. "shm": workers run on this node only. "auto": workers
        run on other nodes only if this one has no room. "store": Ray chooses the nodes.
    folder (str): Folder for temporary files of a new cluster, which is deleted with it; else "".
    RAISES (DialogError): If Ray does not start, or cannot be reached.
    """

    def __init__(
        self,
        address: Optional[str],
        num_cpus: Optional[int],
        object_store_memory: Optional[int],
        plane: str = "auto",
    ):
        with importing("ray", NEED):
            import ray
        self.ray: Any = ray
        self.is_here_only, self.is_near = plane == "shm", plane != "store"
        self._is_ours, self.folder = False, ""
        if self.ray.is_initialized():
            return
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        options: Dict[str, Any] = {"address": address}
        if address is not None:
            check_cluster_answers(address)
        else:
            # The new cluster gets a folder of its own, which is deleted with it.
            place = tempfile.gettempdir()
            place = place if len(place) <= LONGEST_PLACE else "/tmp"
            self.folder = tempfile.mkdtemp(prefix="td-ray-", dir=place)
            options = {
                "address": "local",
                "num_cpus": num_cpus,
                "object_store_memory": object_store_memory,
                "include_dashboard": False,
                "_temp_dir": self.folder,
            }
        self._is_ours = True
        try:
            with own_handlers():
                self.ray.init(
                    log_to_driver=False,
                    logging_level="ERROR",
                    configure_logging=False,
                    ignore_reinit_error=True,
                    **options,
                )
        except BaseException as error:
            self.close()
            if isinstance(error, SystemExit):  # Ray's own handler received SIGTERM.
                signal.raise_signal(signal.SIGTERM)
            if not isinstance(error, Exception):
                raise
            what, reason = "Ray does not start", " ".join(str(error).split())
            if address is not None:
                what = f"cannot join the cluster at {address!r}"
                if not is_place(address):
                    reason += ' (Give HOST:PORT, or "auto".)'
                else:
                    reason += " (If it asks for a token, set RAY_AUTH_MODE=token: docs/ray.md.)"
            raise DialogError(f"[runner] {what}: {reason}") from None

    def close(self) -> None:
        """Leave the cluster, and end it if this process started it."""
        if self._is_ours:
            self.ray.shutdown()
            self._is_ours = False
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def node(self) -> str:
        """Id of the node on which this process runs."""
        return self.ray.get_runtime_context().get_node_id()

    def check_room(self, n_workers: int, n_gpus: float) -> None:
        """Check that there is room for all workers; Ray would wait for it without a message.

        n_workers (int): Number of workers.
        n_gpus (float): GPUs for each worker.
        RAISES (DialogError): If there is no room; the message names the needed and the existing
            resources.
        """
        where = "this node" if self.is_here_only else "the Ray cluster"
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        if self.is_here_only:
            nodes = [node for node in nodes if node["NodeID"] == self.node]
        needed = {"CPU": float(n_workers), "GPU": n_workers * n_gpus}
        for kind, amount in needed.items():
            there = sum(node["Resources"].get(kind, 0.0) for node in nodes)
            if amount > there:
                what = "num_gpus_per_worker" if kind == "GPU" else "num_workers"
                hint = f"lower {what}, or add nodes"
                if kind == "CPU" and self.folder:
                    hint = f"lower num_workers, or set num_cpus = {n_workers} to share processors"
                raise DialogError(
                    f"[runner] num_workers = {n_workers} needs {amount:.10g} {kind}s, but {where} "
                    f"has {there:g}: {hint}."
                )
        room = {"CPU": 1.0, "GPU": n_gpus} if n_gpus else {"CPU": 1.0}
        label = {"ray.io/node-id": self.node} if self.is_here_only else {}
        given = {"bundle_label_selector": [label] * n_workers}
        group = self.ray.util.placement_group([room] * n_workers, **given)
        has_room = group.wait(FREE_SECONDS)
        self.ray.util.remove_placement_group(group)
        if not has_room:
            raise DialogError(
                f"[runner] num_workers = {n_workers}, but {where} does not have 1 CPU and "
                f"{n_gpus:g} GPUs of one node free for each of them: lower num_workers, add nodes, "
                "or wait until other runs have ended."
            )

    def start(self, kind: type, *, n_cpus: float, n_gpus: float, at_once: int) -> Any:
        """Start an actor, and return its handle.

        kind (type): Class of the actor.
        n_cpus, n_gpus (float): Resources that the actor needs.
        at_once (int): Number of calls that the actor executes concurrently.
        """
        strategies = self.ray.util.scheduling_strategies
        strategy: Any = "DEFAULT"
        if self.is_near:
            # ``soft`` alone allows another node if this node is gone, but not if it is full.
            soft = not self.is_here_only
            strategy = strategies.NodeAffinitySchedulingStrategy(
                self.node, soft=soft, _spill_on_unavailable=soft
            )
        options = {"num_cpus": n_cpus, "num_gpus": n_gpus, "max_concurrency": at_once}
        if not n_cpus and self.is_near:
            # Ray lets any node place an actor that needs no resources, even a node that does not
            # know the other nodes yet. So ask for one byte.
            options["memory"] = 1
        remote = self.ray.remote(kind).options(**options, scheduling_strategy=strategy)
        return remote.remote()
