"""The ops that numeric tests run with: NumPy's and the compiled ones always, CuPy's where
there is a GPU."""

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


# Tests take the fixture ``ops``: NumPy's, or with this mark all of them in turn.
EACH_OPS = pytest.mark.parametrize("ops", BACKENDS, indirect=True)


@pytest.fixture
def ops(request):
    """Ops for new models."""
    with backend(getattr(request, "param", -1)) as ops:
        yield ops


def new_ops(backend):
    """New ops of one of the backends."""
    return DialogFastOps() if backend == "fast" else get_dialog_ops(backend)


def same_bits(found, wanted):
    """See that arrays of ours are those of Thinc's compiled code; but for the last digits on
    processors whose compilers multiply and add at once."""
    if platform.machine() in ("x86_64", "AMD64"):
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@contextmanager
def backend(gpu_id):
    """Make the ops and let Thinc use them for new models."""
    with using_ops(new_ops(gpu_id)) as ops:
        yield ops


def ragged(examples, ops=None):
    """Ids of texts, or pairs of id and segment, as layers take them: on the host."""
    pairs = [t if isinstance(t, tuple) else (t, 0) for example in examples for t in example]
    data = np.array(pairs, dtype="i").reshape(-1, 2)
    lengths = np.array([len(example) for example in examples], dtype="i")
    return Ragged(data, lengths)


def in_threads(work, arguments):
    """Call the work with each argument at once."""
    threads = [Thread(target=work, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)


def made(layer, X=None):
    """A layer with weights, on the CPU."""
    with backend(-1):
        layer = layer()
        layer.initialize(X=X)
    return layer
