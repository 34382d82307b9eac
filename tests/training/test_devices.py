"""Whole runs on the CPU and, where there is one, on a GPU."""

import io

import pytest

from tests.ops.array_backends import BACKENDS
from thincdialog.api import DialogError, evaluate, load, train
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
@pytest.mark.parametrize("gpu_id", BACKENDS)
def test_devices_train_save_and_load(name, gpu_id, tmp_path):
    bits = []
    for run in "ab":
        result = train(
            CONFIGS[name],
            output=tmp_path / run,
            overrides={"system.gpu_id": gpu_id, "training.max_steps": 4},
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
