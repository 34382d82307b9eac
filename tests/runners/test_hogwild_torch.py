"""Hogwild workers train a model with a PyTorch module."""

import numpy as np
import pytest

from tests.processes import slow
from tests.training.examples import quietly_train
from tests.training.torch_encoder import CODE, TORCH
from thincdialog.api import evaluate, load
from thincdialog.files.saved_model import BEST, LAST
from thincdialog.runs.run_log import read_log

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("executor", ["thread", slow("process")])
@pytest.mark.parametrize("optimizer", ["Adam.v1", "thincdialog.LazyAdam.v1"])
def test_hogwild_torch_workers_train_one_model_and_leave_frozen_weights(
    executor, optimizer, tmp_path
):
    text = TORCH.replace("thincdialog.LazyAdam.v1", optimizer)
    block = f'\n[runner]\n@runners = "thincdialog.Hogwild.v1"\nexecutor = "{executor}"\n'
    options = {"code": CODE, "agent__candidates": "batch", "training__max_epochs": 4.0}
    quietly_train(text, tmp_path / "start", **{**options, "training__max_steps": 1})
    result, _ = quietly_train(text + block, tmp_path / "out", **options)
    rows = read_log(tmp_path / "out")
    losses = [row["loss_per_example"] for row in rows[1:]]
    assert rows[-1]["step"] == 56 and losses[-1] < 0.9 * losses[0]
    assert evaluate(tmp_path / "out" / BEST, split="dev", code=CODE) == result.scores["dev"]
    # With so little data, the best model may be the first.
    start, end = (
        load(tmp_path / name, code=CODE).agent.parameters
        for name in (f"start/{BEST}", f"out/{LAST}")
    )
    assert start.frozen.tobytes() == end.frozen.tobytes() and start.frozen.any()
    moved = np.array([(slot.of(start.values) != slot.of(end.values)).any() for slot in end.slots
                      if slot.offset < len(end.values)])  # fmt: skip
    assert moved.all()
