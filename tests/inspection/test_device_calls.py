"""The calls that code makes to a GPU, as Python sees them, compared with the counts of the
stand-in."""

import linecache
from collections import Counter

import numpy as np
import pytest
from thinc.api import Adam, Maxout

from tests.ops.array_backends import backend
from tests.training.test_device_counts import TABLE, cupy, training  # noqa: F401
from thincdialog.inspection.device_calls import FROM_HOST, LAUNCH, TO_HOST, WAIT, noting
from thincdialog.ops.choice import get_dialog_ops
from thincdialog.ops.gpu import kernels

pytestmark = pytest.mark.gpu


class Noted:
    def __init__(self):
        self.times, self.lines = Counter(), Counter()

    def __call__(self, kind, n_bytes, line):
        self.times[kind] += 1
        self.lines[kind, line] += 1


def both(cupy, work, ops):  # noqa: F811
    """Return the calls that are recorded, and the counts of the stand-in."""
    noted = Noted()
    with cupy.counted() as counts, noting(ops, noted):
        work()
    return noted, counts


@pytest.mark.parametrize("name", TABLE)
def test_device_calls_of_a_step_are_all_seen(name, root, tmp_path, cupy):  # noqa: F811
    with training(root, tmp_path, name) as step:
        for _ in range(3):
            step()
        noted, counts = both(cupy, step, get_dialog_ops(0))
    times = tuple(noted.times[kind] for kind in (WAIT, TO_HOST, FROM_HOST))
    assert times == (counts.waits, counts.d2h, counts.h2d)
    # Writing at several indices takes several kernels, but counts as one.
    assert 0.85 * counts.launches < noted.times[LAUNCH] <= counts.launches
    lines = [line for kind, line in noted.lines if kind == FROM_HOST]
    assert all(line.startswith("thincdialog/") for line in lines)


def test_device_calls_of_cupy_and_thinc_are_seen_with_their_lines(root, cupy):  # noqa: F811
    with backend(0) as ops:
        X = ops.asarray(np.ones((6, 4), dtype="f"))
        layer, optimizer = Maxout(4, 4), Adam(0.1)
        layer.initialize(X=X)

        def work():
            _, backprop = layer(X, True)
            backprop(X)
            layer.finish_update(optimizer)
            Z = cupy.add(X, 1) * 2 - X
            Z += X
            Z[:2] = 0
            Z[X[:, 0] > 0] = 1
            cupy.asarray(np.ones(5, dtype="f"))
            assert float(Z.sum()) and Z.get().shape == (6, 4)  # Two waits.
            X[1:], Z.T, cupy.empty((3,)), X.astype("f", copy=False)

        noted, counts = both(cupy, work, ops)
    # Indexing by a mask takes several kernels, and so do Thinc's reductions; each counts as one.
    assert 0.9 * counts.launches < noted.times[LAUNCH] <= counts.launches
    waits = (counts.waits, counts.h2d, counts.d2h)
    assert tuple(noted.times[kind] for kind in (WAIT, FROM_HOST, TO_HOST)) == waits == (3, 1, 3)
    found = Counter()
    for (kind, line), n in noted.lines.items():
        file, _, number = line.rpartition(":")
        if kind == WAIT:
            found[linecache.getline(str(root / file), int(number)).strip()] += n
    assert found == {
        "Z[X[:, 0] > 0] = 1": 1,
        "assert float(Z.sum()) and Z.get().shape == (6, 4)  # Two waits.": 2,
    }


def test_device_calls_restore_everything(cupy):  # noqa: F811
    def names():
        owners = (cupy, cupy.ndarray, cupy.cublas, cupy.cuda.Stream, kernels)
        return [dict(vars(owner)) for owner in owners]

    before, ops = names(), get_dialog_ops(0)
    with pytest.raises(KeyError), noting(ops, Noted()):
        assert names() != before
        raise KeyError
    assert names() == before
