"""Settings and fixtures of all tests: seeds, relaxed deadlines, and the real data if it is
there."""

import gc
import os
import random
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy
import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

# No test simulates a power failure, and waiting for the disk takes a tenth of the time of all
# tests.
os.fsync = lambda handle: None
# Without bytecode, each process that a test starts would compile the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The machine may be busy with other work, so a slow example is no failure. Slow tests try more
# examples.
settings.register_profile("quick", deadline=None, max_examples=15)
settings.register_profile("slow", deadline=None, max_examples=50)
settings.load_profile("quick")


def pytest_configure(config):
    """Let properties among the slow tests try more examples."""
    if config.option.markexpr.startswith("slow"):
        settings.load_profile("slow")


def pytest_collection_modifyitems(items):
    """Skip tests marked gpu if CuPy sees no device, and tests marked torch if PyTorch is
    missing."""
    has_torch = find_spec("torch") is not None
    for item in items:
        if item.get_closest_marker("torch") and not has_torch:
            item.add_marker(
                pytest.mark.skip(reason="needs torch: pip install 'thincdialog[torch]'")
            )
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu:
        from thinc.compat import has_cupy_gpu

        if not has_cupy_gpu:
            for item in on_gpu:
                item.add_marker(
                    pytest.mark.skip(
                        reason="needs a CUDA device and CuPy; make test-gpu has a stand-in"
                    )
                )


def pytest_collection_finish():
    """Keep modules and tests out of garbage collections, which take a tenth of the time else."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def seed():
    """Start every test from the same global random state."""
    random.seed(0)
    numpy.random.seed(0)
    return 0


@pytest.fixture(autouse=True)
def device(request):
    """Start each GPU test on the first GPU, whichever GPU the previous test used last."""
    if request.node.get_closest_marker("gpu"):
        import cupy

        cupy.cuda.Device(0).use()


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder of real dialogue data next to the project."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the real data in ../shared/data")
    return folder
