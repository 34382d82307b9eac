"""A GPU's memory: the log shows how much is in use, and an error names what does not fit."""

import json
import re

import numpy as np
import pytest

from tests.training.examples import RANKER, quietly_train
from thincdialog.agents.ranker import RankerAgent
from thincdialog.cli.main import main
from thincdialog.errors import DeviceMemoryError
from thincdialog.models.gradient_sum import GradientSum
from thincdialog.models.parameters import FlatParameters
from thincdialog.ops.device_memory import held_bytes, is_out_of_memory

LAZY = RANKER.replace('"Adam.v1"', '"thincdialog.LazyAdam.v1"')


@pytest.fixture
def pool():
    """Return the pool of the stand-in, which can refuse memory."""
    cupy = pytest.importorskip("cupy")
    if not hasattr(cupy, "is_stand_in"):
        pytest.skip("needs the stand-in for CuPy, whose memory can be refused")
    return cupy.get_default_memory_pool()


@pytest.mark.gpu
def test_device_memory_is_logged(tmp_path):
    settings = {"training__max_steps": 3, "training__log_every_steps": 1}
    quietly_train(LAZY, tmp_path / "gpu", system__gpu_id=0, **settings)
    lines = (tmp_path / "gpu" / "log.jsonl").read_text().splitlines()
    assert all(json.loads(line)["gpu_bytes"] > 0 for line in lines)
    quietly_train(LAZY, tmp_path / "cpu", **settings)
    assert "gpu_bytes" not in (tmp_path / "cpu" / "log.jsonl").read_text()


@pytest.mark.gpu
@pytest.mark.parametrize(
    "method, remedy",
    [
        ("learn", r"\[world\.batcher\] \(training\.accumulate_gradient adds batches up\), or "),
        ("answer", r"\[evaluation\.world\.batcher\], .+, or use fewer candidates or the CPU"),
    ],
)
def test_device_memory_batch_that_does_not_fit_is_one_line_of_advice(
    method, remedy, pool, monkeypatch, tmp_path, capsys
):
    """It may happen in training, in an evaluation of a run, and in ``evaluate``."""
    changes = {"training__max_steps": 2, "system__gpu_id": 0}
    quietly_train(LAZY, tmp_path / "run", **changes)
    real = getattr(RankerAgent, method)

    def refused(self, batch):
        with pool.refusing(512):
            return real(self, batch)

    monkeypatch.setattr(RankerAgent, method, refused)
    said = r"has no room for a batch of \d+ examples of up to \d+ tokens \(.+\)\. Set a smaller "
    with pytest.raises(DeviceMemoryError, match=said + remedy):
        quietly_train(LAZY, tmp_path / "out", **changes)
    if method == "answer":
        assert main(["evaluate", str(tmp_path / "run"), "--gpu-id", "0"]) == 1
        shown = capsys.readouterr().err
        assert re.search(said + remedy, shown) and "Traceback" not in shown


@pytest.mark.gpu
@pytest.mark.parametrize(
    "kind, where, part",
    [
        (FlatParameters, "update", "the step of [training.optimizer] on"),
        (FlatParameters, "load", "the arrays of [agent.model] and"),
        (GradientSum, "add", "Set a smaller training.accumulate_gradient"),
        (GradientSum, "take", "Set a smaller training.accumulate_gradient"),
    ],
)
def test_device_memory_without_room_is_one_line_and_keeps_the_run(
    kind, where, part, pool, monkeypatch, tmp_path, capsys
):
    """It may happen in a step of the optimizer, when a run copies its weights, and when gradients
    are added up."""
    config, run = tmp_path / "my.cfg", tmp_path / "run"
    config.write_text(LAZY)
    command = ["train", str(config), "-o", str(run), "--gpu-id", "0"]
    n_batches = 2 if kind is GradientSum else 1
    command += ["--training.accumulate_gradient", str(n_batches), "--training.max_steps"]
    assert main([*command, "4", "--training.eval_every_steps", "2"]) == 0
    before = {path: path.read_bytes() for path in run.glob("model-*/weights.npy")}
    method = getattr(kind, where)

    def refused(self, *args):
        with pool.refusing(0):
            method(self, *args)
            self.ops.xp.empty(1)

    monkeypatch.setattr(kind, where, refused)
    capsys.readouterr()
    command += ["8", "--training.eval_every_steps", "2"]
    assert main([*command, "--resume"]) == 1
    shown = capsys.readouterr().err.strip().splitlines()[-1]
    assert "The GPU's memory (" in shown and "has no room for " in shown
    assert part in shown and "a smaller width or vocabulary" in shown
    assert before and before == {path: path.read_bytes() for path in before}
    monkeypatch.undo()
    assert main([*command, "--resume"]) == 0


@pytest.mark.gpu
def test_device_memory_errors_of_cuda_outside_the_pool_are_recognised(pool):
    import cupy

    error = cupy.cuda.runtime.CUDARuntimeError
    assert is_out_of_memory(error("cudaErrorMemoryAllocation: out of memory"))
    assert not is_out_of_memory(error("cudaErrorLaunchFailure: unspecified launch failure"))
    assert not is_out_of_memory(MemoryError("out of memory"))


def test_device_memory_of_the_cpu_is_not_logged():
    assert held_bytes(np.zeros(3)) is None and not is_out_of_memory(MemoryError())
