"""Whole runs on the CPU and, where there is one, on a GPU."""

import io
import sys

import pytest

from tests.ops.array_backends import BACKENDS
from thincdialog.api import DialogError, evaluate, load, train
from thincdialog.ops.compiled import load_kernels
from thincdialog.training.run_keeper import BEST, LAST

from .examples import RANKER

LAZY = RANKER.replace('"Adam.v1"', '"thincdialog.LazyAdam.v1"\nuse_averages = true')
CONFIGS = {
    "bag": LAZY,
    "cnn": RANKER.replace("BagEncoder.v1", "CNNEncoder.v1"),
    "lstm": LAZY.replace("BagEncoder.v1", "BiLSTMEncoder.v1"),
    "memory": LAZY.replace("BagEncoder.v1", "MemoryReader.v1"),
    "hinge": LAZY.replace(
        "[agent.model]\n",
        '[agent.loss]\n@losses = "thincdialog.RankingHinge.v1"\n\n[agent.model]\n',
        1,
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_devices_train_save_and_load(name, backend, tmp_path):
    system = {"system.ops": "fast"} if backend == "fast" else {"system.gpu_id": backend}
    bits = []
    for run in "ab":
        result = train(
            CONFIGS[name],
            output=tmp_path / run,
            overrides={**system, "training.max_steps": 4},
            stdout=io.StringIO(),
            stderr=io.StringIO(),
        )
        bits.append((tmp_path / run / LAST / "weights.npy").read_bytes())
    assert bits[0] == bits[1]
    model = tmp_path / "a" / BEST
    assert evaluate(model) == result.scores["test"]
    # A model of a GPU works on the CPU; sums differ in the last digits there.
    on_cpu = evaluate(model, overrides={"system.gpu_id": -1})
    assert on_cpu["loss"] == pytest.approx(result.scores["test"]["loss"], rel=1e-3)
    assert load(model, overrides={"system.gpu_id": -1}).respond("Good morning!")


def test_devices_gpu_that_is_missing_is_an_error_before_any_work(tmp_path):
    with pytest.raises(DialogError, match="gpu_id = 99"):
        train(RANKER, output=tmp_path / "out", overrides={"system.gpu_id": 99})
    assert not (tmp_path / "out").exists()


@pytest.fixture
def quietly_train(tmp_path):
    """Train a few steps with compiled kernels."""

    def run(**settings):
        overrides = {"system.ops": "fast", "training.max_steps": 4}
        streams = {"stdout": io.StringIO(), "stderr": io.StringIO()}
        folder = tmp_path / "run"
        return train(LAZY, output=folder, overrides=overrides, **streams, **settings)

    return run


@pytest.fixture
def no_numba(monkeypatch):
    """Call it, and numba cannot be imported any more."""

    def forget():
        monkeypatch.setitem(sys.modules, "numba", None)
        load_kernels.cache_clear()

    yield forget
    load_kernels.cache_clear()


def test_devices_fast_ops_without_numba_are_an_error_before_any_work(
    quietly_train, no_numba, tmp_path
):
    no_numba()
    with pytest.raises(DialogError, match=r"numba.*pip install 'thincdialog\[fast\]'$"):
        quietly_train()
    assert not (tmp_path / "run").exists()


def test_devices_model_of_fast_ops_answers_without_numba(quietly_train, no_numba):
    result = quietly_train()
    model = result.output / BEST
    no_numba()
    assert evaluate(model)["loss"] == pytest.approx(result.scores["test"]["loss"], rel=1e-4)
    assert load(model).respond("Good morning!")


def test_devices_run_goes_on_with_other_ops(quietly_train, tmp_path):
    quietly_train()
    stderr = io.StringIO()
    overrides = {"system.ops": "numpy", "training.max_steps": 6}
    train(
        LAZY,
        output=tmp_path / "run",
        overrides=overrides,
        resume=True,
        stdout=io.StringIO(),
        stderr=stderr,
    )
    assert "system.ops 'fast' -> 'numpy'" in stderr.getvalue()
