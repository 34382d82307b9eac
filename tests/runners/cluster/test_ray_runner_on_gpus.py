"""Whole runs on a Ray cluster whose workers have their own GPUs."""

import pytest

from tests.runners.cluster.test_ray import (
    ASYNC_CALLS,
    CONFIG,
    SYNC_CALLS,
    killing,
    last_worker,
    run,
    server,
)
from thincdialog.runners.cluster.sync_runner import SyncRunner

pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.gpu, pytest.mark.slow]
SPARSE = CONFIG.replace('"Adam.v1"', '"thincdialog.LazyAdam.v1"\nuse_averages = true')
ON_GPUS = {"num_gpus_per_worker": 1}
HERE = {"num_workers": 0, "system.gpu_id": 0}


@pytest.fixture(scope="session", autouse=True)
def two_gpus():
    """Skip the tests unless there are two GPUs, for which the cluster is set up."""
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")


def rows(found):
    """Return the rows of the log without GPU memory, which depends on the number of workers."""
    # The first row may be written before the first step.
    assert all(row["gpu_bytes"] > 10_000 for row in found[1][1:])
    return [{name: row[name] for name in row if name != "gpu_bytes"} for row in found[1]]


@pytest.mark.parametrize("config", [CONFIG, SPARSE], ids=["adam", "lazy"])
def test_gpus_of_ray_workers_end_with_the_same_weights_scores_and_log(config, cluster, tmp_path):
    alone = run(tmp_path / "alone", HERE, config)
    for plane, n_workers in (("shm", 1), ("shm", 2), ("store", 2)):
        name = f"{plane}{n_workers}"
        found = run(tmp_path / name, {**ON_GPUS, "plane": plane, "num_workers": n_workers}, config)
        assert found[0] == alone[0], name
        assert rows(found) == rows(alone) and len(alone[1]) > 3, name
    on_cpu = run(tmp_path / "cpu", {"num_workers": 0}, config)
    assert on_cpu[0] != alone[0]


def test_gpus_of_ray_workers_may_be_shared_by_two_workers_each(cluster, tmp_path):
    shares = {"num_gpus_per_worker": 0.5, "num_workers": 4, "microbatches": 2}
    alone = run(tmp_path / "alone", HERE)
    assert run(tmp_path / "shares", shares)[0] == alone[0]


@pytest.mark.parametrize("plane", ["shm", "store"])
def test_gpus_of_ray_workers_a_killed_worker_changes_no_result(
    plane, cluster, tmp_path, monkeypatch
):
    long = {"training.max_epochs": 4.0, "snapshot_every": 7, "max_restarts": 9}
    alone = run(tmp_path / "alone", {**long, **HERE}, SPARSE)
    calls = ["start_epoch", "run", "evaluate", "place", *["owned"] * (plane == "store")]
    left = killing(monkeypatch, SYNC_CALLS, [(name, last_worker) for name in calls])
    take = SyncRunner.take
    monkeypatch.setattr(SyncRunner, "take", lambda *given: take(*given[:2], min(given[2], 2)))
    found = run(tmp_path / "two", {**long, **ON_GPUS, "plane": plane}, SPARSE)
    assert not left
    assert found[2].count("worker 1 died: resumed with 1 worker from step") == len(calls)
    assert found[0] == alone[0]
    assert rows(found) == rows(alone)


@pytest.mark.parametrize("plane", ["shm", "store"])
def test_gpus_of_ray_workers_asynchronous_every_example_counts_once(
    plane, cluster, tmp_path, monkeypatch
):
    given = {"mode": "async", "microbatches": 2, "plane": plane, "training.max_epochs": 6.0}
    given.update({"snapshot_every": 5, "training.eval_every_steps": 0})
    victims = [("end_at", server), ("snapshot", last_worker)]
    left = killing(monkeypatch, ASYNC_CALLS, victims)
    _, found, told = run(tmp_path / "two", {**given, **ON_GPUS}, SPARSE)
    assert not left
    assert told.count("the server died") == told.count("worker 1 died") == 1
    alone = run(tmp_path / "alone", {**given, **HERE}, SPARSE)[1]
    counts = [(found[-1][name], alone[-1][name]) for name in ("epoch", "step", "examples")]
    assert all(one == other for one, other in counts), counts
    # Check the loss, because the score of the few evaluated examples may not change.
    losses = [row["loss_per_example"] for row in found[1:]]
    assert all(row["gpu_bytes"] > 10_000 for row in found[1:])
    assert losses[-1] < 0.8 * losses[0], losses
