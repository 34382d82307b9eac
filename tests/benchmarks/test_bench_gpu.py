"""The command that times training on a GPU runs on the stand-in, which has no times."""

import os
import subprocess
import sys

import numpy as np
import pytest


def run(root, *options, **environment):
    command = [sys.executable, str(root / "tests" / "benchmarks" / "bench_gpu.py"), *options]
    known = {**os.environ, **environment}
    return subprocess.run(command, cwd=root, capture_output=True, text=True, env=known)


def tables(text):
    """Return the rows of each table, as dictionaries."""
    found = []
    for block in text.split("\n\n")[1:]:
        rows = [line.strip("| ").split(" | ") for line in block.splitlines()]
        found.append([dict(zip(rows[0], row)) for row in rows[2:]])
    return found


@pytest.mark.slow
def test_bench_gpu_without_a_gpu_is_one_line(root):
    done = run(root, PYTHONPATH=str(root), CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1 and not done.stderr
    assert done.stdout.startswith("skipped, it needs a GPU: gpu_id = 0 ")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.gpu
@pytest.mark.slow
def test_bench_gpu_fills_its_tables(root):
    cupy = pytest.importorskip("cupy")
    done = run(root, "--quick")
    assert not done.returncode, done.stderr
    steps, kernels = tables(done.stdout)
    assert {row["waits"] for row in steps} == {"0"}
    assert all(0 < int(row["copies"]) <= 64 for row in steps)
    times = ("examples/s", "PyTorch", "GPU idle", "of product limit", "x CPU thread")
    if hasattr(cupy, "is_stand_in"):
        assert done.stdout.startswith("No GPU: a stand-in for CuPy, which measures no times.\n")
        assert {row[name] for row in steps for name in row if name in times or "(" in name} == {"-"}
        assert {row["us a step"] for row in kernels} == {"-"}
    assert {"attend", "backprop_queries", "lstm", "backprop_lstm", "(product)"} <= {
        row["kernel (CuPy's own: none)"] for row in kernels
    }


@pytest.mark.gpu
def test_bench_gpu_steps_that_let_the_card_wait_have_no_times(root, monkeypatch):
    cupy = pytest.importorskip("cupy")
    if not hasattr(cupy, "is_stand_in"):
        pytest.skip("needs the stand-in for CuPy, whose events can be over at once")
    monkeypatch.syspath_prepend(root / "tests" / "benchmarks")
    from bench_gpu import Card

    monkeypatch.setattr(Card, "fewest_turns", 1)
    monkeypatch.setattr(Card, "most_turns", 8)
    card, steps = Card(cupy), []
    monkeypatch.setattr(cupy.cuda.Event, "done", True)
    monkeypatch.setattr(card, "between", lambda first, last: 1.0)
    for _ in range(2):  # The second call starts with few turns again.
        assert np.isnan(card.seconds(lambda: steps.append(1), n=5))
    assert len(steps) == 2 * 4
    monkeypatch.setattr(cupy.cuda.Event, "done", False)
    assert card.seconds(lambda: steps.append(1), n=5) == 1.0 and len(steps) == 2 * 4 + 5
