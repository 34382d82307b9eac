"""The ops that numeric tests run with: NumPy's always, CuPy's where there is a GPU."""

from contextlib import contextmanager

import pytest

from thincdialog.ops.choice import get_dialog_ops, using_ops

BACKENDS = [
    pytest.param(-1, id="numpy"),
    pytest.param(0, id="cupy", marks=pytest.mark.gpu),
]


@contextmanager
def backend(gpu_id):
    """Make the ops and let Thinc use them for new models."""
    with using_ops(get_dialog_ops(gpu_id)) as ops:
        yield ops
