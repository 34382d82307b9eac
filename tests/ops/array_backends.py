"""The ops that numeric tests run with: NumPy's and the compiled ones always, CuPy's where
there is a GPU."""

from contextlib import contextmanager

import pytest

from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.ops.dialog_fast_ops import DialogFastOps

BACKENDS = [
    pytest.param(-1, id="numpy"),
    pytest.param("fast", id="fast"),
    pytest.param(0, id="cupy", marks=pytest.mark.gpu),
]


def new_ops(backend):
    """New ops of one of the backends."""
    return DialogFastOps() if backend == "fast" else get_dialog_ops(backend)


@contextmanager
def backend(gpu_id):
    """Make the ops and let Thinc use them for new models."""
    with using_ops(new_ops(gpu_id)) as ops:
        yield ops
