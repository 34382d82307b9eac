"""The parts that workers own make the step of the whole gradient, scaled and clipped."""

import numpy
import pytest
from thinc.api import SGD

from thincdialog.ops.choice import get_dialog_ops
from thincdialog.optimizers.row_sparse import Segment
from thincdialog.optimizers.sparse_sgd import SparseSGD
from thincdialog.runners.cluster import shard
from thincdialog.runners.cluster.shard import Gradient, Shard, n_blocks_of, pieces_of

N_FLOATS, WIDTH = 103, 5
# Weights that are in no table, and then a table of 4 rows.
STRETCHES = [Segment(0, N_FLOATS), Segment(N_FLOATS, N_FLOATS + 4 * WIDTH, WIDTH)]


@pytest.mark.parametrize("ops", ["numpy", "fast"])
@pytest.mark.parametrize("make", [SGD, SparseSGD])
@pytest.mark.parametrize("n_workers", [1, 2, 3])
@pytest.mark.parametrize("limit", [0.0, 0.5, 100.0])
def test_shards_make_the_step_of_the_scaled_and_clipped_sum(
    limit, n_workers, make, ops, monkeypatch
):
    monkeypatch.setattr(shard, "BLOCK_FLOATS", 40)
    rng, size, scale = numpy.random.default_rng(0), STRETCHES[-1].stop, 1 / 7
    vectors = rng.normal(size=(3, size)).astype("f")
    vectors[:, N_FLOATS:] = 0
    rows = [numpy.array([0, 2]), numpy.array([2]), numpy.zeros(0, "q")]
    tables = [(each, rng.normal(size=(len(each), WIDTH)).astype("f")) for each in rows]
    whole = vectors.astype("d").sum(axis=0)
    for each, values in tables:
        for row, d_row in zip(each, values):
            at = N_FLOATS + row * WIDTH
            whole[at : at + WIDTH] += d_row
    whole *= scale
    norm = numpy.linalg.norm(whole)
    step = whole * (limit / norm if limit and norm > limit else 1.0)

    weights = rng.normal(size=size).astype("f")
    before, sums = weights.copy(), numpy.zeros(n_blocks_of(STRETCHES))
    slots = [Gradient(vector, [table]) for vector, table in zip(vectors, tables)]
    workers = [
        Shard(pieces_of(STRETCHES, n, n_workers), make(0.1, grad_clip=limit, use_averages=False),
              get_dialog_ops(-1, ops), {})
        for n in range(n_workers)
    ]  # fmt: skip
    for worker in workers:
        worker.add_up(slots, sums)
    for worker in workers:
        assert worker.norm(sums, scale) == pytest.approx(norm, rel=1e-5)
        worker.step(weights, vectors[0], scale, worker.norm(sums, scale))
    numpy.testing.assert_allclose(before - weights, 0.1 * step, rtol=1e-3, atol=1e-6)
    assert not vectors.any()
