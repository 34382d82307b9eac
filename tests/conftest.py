"""What all tests share: seeds, relaxed deadlines, and the real data where it is."""

import os
import random
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy
import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

# No test cuts the power, and to wait for the disk takes a tenth of the time of all tests.
os.fsync = lambda handle: None
# Without bytecode, each process that a test starts would compile the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The machine may be busy with other work; a slow example is no failure. Slow tests try more.
settings.register_profile("quick", deadline=None, max_examples=15)
settings.register_profile("slow", deadline=None)
settings.load_profile("quick")


def pytest_configure(config):
    """Properties among the slow tests are tried with Hypothesis's own number of examples."""
    if config.option.markexpr.startswith("slow"):
        settings.load_profile("slow")


def pytest_collection_modifyitems(items):
    """Tests marked gpu run where CuPy sees a device, those marked torch where PyTorch is."""
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


@pytest.fixture(autouse=True)
def seed():
    """Every test starts from the same global random state."""
    random.seed(0)
    numpy.random.seed(0)
    return 0


@pytest.fixture(autouse=True)
def device(request):
    """A test of a GPU begins on the first one, whichever the one before ended on."""
    if request.node.get_closest_marker("gpu"):
        import cupy

        cupy.cuda.Device(0).use()


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real dialogue data beside the project."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the real data in ../shared/data")
    return folder
