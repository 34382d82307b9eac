"""Whole runs of a ranker whose encoder is a PyTorch module."""

import json

import pytest

from tests.runners.resuming import NOTES, Crash, remains, same
from tests.training.examples import quietly_train, weights
from tests.training.torch_encoder import CODE, TORCH
from thincdialog.api import evaluate, load
from thincdialog.config import load_code
from thincdialog.files.saved_model import BEST, LAST
from thincdialog.runs.run_log import read_log

pytestmark = pytest.mark.torch
# The config has dropout of PyTorch and ours, sums over microbatches, and averages.
RESUMED = (
    TORCH.replace("thincdialog.Ranker.v1", "tests.noting_ranker.v1")
    .replace("max_epochs = 2.0", "max_epochs = 2.0\naccumulate_gradient = 2")
    .replace("n_samples = 1", "n_samples = 1\ncheckpoint_every_steps = 2\neval_every_steps = 5")
    .replace("L2 = 0.01", "L2 = 0.01\nuse_averages = true\naverage_every = 2")
)


def train(output, text=TORCH, **options):
    return quietly_train(text, output, code=CODE, **options)


def test_train_torch_learns_saves_what_it_reports_and_answers_from_the_saved_model(tmp_path):
    result, _ = train(tmp_path, training__max_epochs=8.0, agent__candidates="batch")
    losses = [row["loss_per_example"] for row in read_log(tmp_path)[1:]]
    assert losses[-1] < 0.9 * losses[0]
    assert result.scores["dev"]["hits@5"] > 0.4, "chance is 0.25"
    assert evaluate(tmp_path / BEST, split="dev", code=CODE) == result.scores["dev"]
    one, two = (load(tmp_path / LAST, code=CODE) for _ in range(2))
    texts = ["hello", "a small latte please", "how much is that"]
    assert [one.respond(text) for text in texts] == [two.respond(text) for text in texts]
    names = {path.name for path in (tmp_path / LAST).iterdir()}
    assert names == {
        "weights.npy", "layout.json", "agent.json", "config.cfg", "meta.json", "README.md",
        "tokenizer",
    }  # fmt: skip
    slots = json.loads((tmp_path / LAST / "layout.json").read_text())["parameters"]
    assert [slot["name"] for slot in slots][-1] == "with_torch_tokens.segments.weight"


def test_train_torch_killed_and_resumed_ends_with_the_same_bits(tmp_path):
    load_code([str(CODE)])
    NOTES.clear()
    train(tmp_path / "whole", RESUMED)
    seen = dict(NOTES.seen)
    for step in (8, 12):
        NOTES.crash_at(step)
        with pytest.raises(Crash):
            train(tmp_path / "out", RESUMED, resume=(tmp_path / "out").exists())
    NOTES.before = lambda step: None
    train(tmp_path / "out", RESUMED, resume=True)
    assert NOTES.seen == seen
    same(remains(tmp_path / "out"), remains(tmp_path / "whole"))


@pytest.mark.parametrize("optimizer", ["Adam.v1", "thincdialog.LazyAdam.v1"])
def test_train_torch_follows_the_seed(optimizer, tmp_path):
    text = TORCH.replace("thincdialog.LazyAdam.v1", optimizer)
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        train(tmp_path / name, text, system__seed=seed, training__max_steps=3)
    assert weights(tmp_path / "a") == weights(tmp_path / "b") != weights(tmp_path / "c")


WRAPPED = """
[agent.model.encoder]
@layers = "chain.v1"

[agent.model.encoder.*.bag]
@models = "thincdialog.BagEncoder.v1"
width = 16

[agent.model.encoder.*.net]
@layers = "tests.torch_net.v1"
"""


def test_train_torch_a_module_that_the_config_builds_follows_the_seed_too(tmp_path):
    head, _, tail = TORCH.partition("[agent.model.encoder]")
    text = head + WRAPPED + tail[tail.index("[world]") - 1 :]
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        overrides = {"system__seed": seed, "training__max_steps": 3}
        train(tmp_path / name, text, **overrides)
    assert weights(tmp_path / "a") == weights(tmp_path / "b") != weights(tmp_path / "c")
