"""The ops that numeric tests run with: NumPy's and the compiled ones always, CuPy's if there is a
GPU."""

import platform
from contextlib import contextmanager
from threading import Thread

import numpy as np
import pytest
from thinc.api import Ragged

from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.ops.dialog_fast_ops import DialogFastOps

BACKENDS = [
    pytest.param(-1, id="numpy"),
    pytest.param("fast", id="fast"),
    pytest.param(0, id="cupy", marks=pytest.mark.gpu),
]


# Tests take the fixture ``ops``: NumPy's, or all of them in turn with this mark.
EACH_OPS = pytest.mark.parametrize("ops", BACKENDS, indirect=True)


@pytest.fixture
def ops(request):
    """Yield ops for new models."""
    with backend(getattr(request, "param", -1)) as ops:
        yield ops


def new_ops(backend):
    """Make new ops of one of the backends."""
    return DialogFastOps() if backend == "fast" else get_dialog_ops(backend)


def same_bits(found, wanted):
    """Check that our arrays equal those of Thinc's compiled code. The last digits may differ on
    processors with fused multiply-add instructions."""
    if platform.machine() in ("x86_64", "AMD64"):
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@contextmanager
def backend(gpu_id):
    """Make the ops, and let Thinc use them for new models."""
    with using_ops(new_ops(gpu_id)) as ops:
        yield ops


def ragged(examples, ops=None):
    """Return ids of texts, or pairs of id and segment, in the form that layers take: on the
    host."""
    pairs = [t if isinstance(t, tuple) else (t, 0) for example in examples for t in example]
    data = np.array(pairs, dtype="i").reshape(-1, 2)
    lengths = np.array([len(example) for example in examples], dtype="i")
    return Ragged(data, lengths)


def in_threads(work, arguments):
    """Call the work with all arguments at once, in threads."""
    threads = [Thread(target=work, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)


def made(layer, X=None):
    """Return a layer with weights, on the CPU."""
    with backend(-1):
        layer = layer()
        layer.initialize(X=X)
    return layer
