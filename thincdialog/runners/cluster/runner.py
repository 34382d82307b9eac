"""The settings of the runner that trains on a Ray cluster, and their checks."""

from typing import Literal, Optional

from ...errors import ConfigError, Problem
from ...registry import registry
from ...training.runner import Runner
from .async_runner import AsyncRunner
from .sync_runner import SyncRunner

NAME = "thincdialog.Ray.v1"
# Smallest object store, in bytes, with which Ray starts.
LEAST_OBJECT_STORE = 75 * 1024 * 1024
# Smallest allowed value of each setting that is a number.
LEAST = {
    "num_workers": 0,
    "microbatches": 1,
    "staleness": 0,
    "num_gpus_per_worker": 0,
    "snapshot_every": 1,
    "max_restarts": 0,
    "num_cpus": 1,
    "object_store_memory": LEAST_OBJECT_STORE,
}


@registry.runners("thincdialog.Ray.v1")
def build_ray(
    num_workers: int = 2,
    mode: Literal["sync", "async"] = "sync",
    microbatches: Optional[int] = None,
    staleness: int = 2,
    address: Optional[str] = None,
    num_cpus: Optional[int] = None,
    num_gpus_per_worker: float = 0.0,
    object_store_memory: Optional[int] = None,
    plane: Literal["auto", "shm", "store"] = "auto",
    snapshot_every: int = 100,
    max_restarts: int = 3,
) -> Runner:
    """Train with several workers, on one machine or on several, with Ray (pip install
    thincdialog[ray]). In mode "sync", each step sums the gradients of all its microbatches, and the
    result is bit for bit the same with any number of workers. In mode "async", a server applies
    each gradient when it arrives.

    num_workers (int): Number of workers; 0 makes the same run in this process, without Ray.
    mode (str): "sync" or "async".
    microbatches (Optional[int]): Number of batches in a step; null for the value of [training]
        accumulate_gradient, which in "sync" is multiplied by the number of workers. If you set it,
        the result of "sync" does not depend on the number of workers.
    staleness (int): In "async", how many steps older than usual (num_workers - 1) a gradient may
        be. An older gradient is dropped, and its microbatches are trained on again.
    address (Optional[str]): Address of an existing cluster ("auto" for the cluster of this
        machine); null starts a cluster that ends with the run.
    num_cpus (Optional[int]): CPUs of a cluster that the run starts; null for all of this machine.
    num_gpus_per_worker (float): GPUs that Ray gives each worker, which trains on the first of
        them; a fraction lets several workers share one GPU. With 0, workers train on the CPU.
    object_store_memory (Optional[int]): Size, in bytes, of the object store of a cluster that the
        run starts.
    plane (str): How workers exchange gradients and weights: "shm" (memory that workers of one
        machine share), "store" (Ray's object store, between machines), or "auto" (the first of
        these that works).
    snapshot_every (int): Steps between two snapshots; a worker's death costs at most this many.
    max_restarts (int): Number of workers that may die before the run ends.
    RAISES (ConfigError): If a number is out of range.
    """
    settings = dict(locals())  # All arguments by name.
    for name, least in LEAST.items():
        value = settings[name]
        if value is not None and not value >= least:
            text = f"'{name}' of {NAME} is {value}"
            raise ConfigError([Problem("", text, f"give {least} or more")])
    if num_gpus_per_worker != round(num_gpus_per_worker, 0 if num_gpus_per_worker > 1 else 4):
        text = f"'num_gpus_per_worker' of {NAME} is {num_gpus_per_worker}"
        hint = "give a whole number, or a fraction of one GPU with at most 4 decimals"
        raise ConfigError([Problem("", text, hint)])
    kind = SyncRunner if mode == "sync" else AsyncRunner
    return kind(**settings)
