"""A real Ray cluster on this machine, which all tests of this folder share."""

import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

NEEDS_RAY = "needs ray: pip install 'thincdialog[ray]'"


@pytest.fixture(scope="session")
def ray_environment():
    """Set the environment for processes of Ray: this process's import path, no token in the user's
    folder, and the priority of other processes, as tests of other workers use all cores."""
    pytest.importorskip("ray", reason=NEEDS_RAY)
    path = ":".join(path for path in sys.path if path)
    given = {"RAY_AUTH_MODE": "disabled", "PYTHONPATH": path, "RAY_worker_niceness": "0"}
    kept = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    yield dict(os.environ)
    for name, value in kept.items():
        os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


@pytest.fixture(scope="session")
def ray_folder():
    """Yield a folder for Ray's files. Its path is short, because sockets are in it."""
    folder = tempfile.mkdtemp(prefix="td-test-ray-", dir="/tmp")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def temporary():
    """Yield a folder for TMPDIR in which there is no other cluster. Its path is short, too."""
    with tempfile.TemporaryDirectory(prefix="td-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def cluster(ray_environment, ray_folder):
    """Yield the package ray with a running cluster, which is set to four CPUs and two GPUs."""
    import ray

    ray.init(
        address="local",
        num_cpus=4,
        num_gpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        configure_logging=False,
        object_store_memory=100 << 20,
        _temp_dir=ray_folder,
    )
    yield ray
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.shutdown()
