"""``[loader] preprocess``: the agent's own observe() runs when a store is built."""

import json

import numpy as np
import pytest

from thincdialog.api import ConfigError, build, train

CODE = """
from pathlib import Path

import numpy as np

from thincdialog.api import Message, registry
from thincdialog.agents.classifier import ClassifierAgent

CALLS = Path("calls")


@registry.agents("first_word.v1")
class FirstWord(ClassifierAgent):
    id = "first_word"

    def observe(self, message):
        with CALLS.open("a") as calls:
            calls.write("x")
        words = message["text"].split()
        short = Message(message, text=words[0], sizes=np.array([len(word) for word in words]))
        observed = super().observe(short)
        if CALLS.with_name("longer").exists():
            observed["turns"] = [*observed["turns"], (1, "more")]
        return observed
"""
CONFIG = """
[tasks.colours]
@teachers = "thincdialog.LabelledText.v1"
train = "colours.jsonl"
dev = "colours.jsonl"

[tokenizer]
@tokenizers = "thincdialog.HashNgrams.v1"
n_rows = 100

[agent]
@agents = "first_word.v1"

[agent.model]
@models = "thincdialog.Classifier.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = 8

[world]
@worlds = "thincdialog.BatchWorld.v1"

[world.batcher]
@batchers = "thincdialog.Fixed.v1"
size = 4

[training]
max_epochs = 3.0
score = "accuracy"
n_samples = 0
"""
TEXTS = ["red or so", "green and more", "blue"]
STORED = {"loader.store": "stores", "loader.preprocess": True}


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """Write the file once, because registered names are permanent."""
    path = tmp_path_factory.mktemp("code") / "first_word.py"
    path.write_text(CODE)
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "own.cfg").write_text(CONFIG)
    rows = [{"text": TEXTS[n % 3], "label": "stop" if n % 3 else "go"} for n in range(20)]
    (tmp_path / "colours.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def trained(folder, code, name, **changes):
    """Return the number of calls of observe() in a run, and the weights."""
    (folder / "calls").write_text("")
    train("own.cfg", output=name, overrides=changes, code=code)
    weights = (folder / name / "model-last" / "weights.npy").read_bytes()
    return len((folder / "calls").read_text()), weights


def test_preprocessing_observes_each_example_once(folder, code):
    n_calls, weights = trained(folder, code, "plain")
    assert n_calls > 100  # 20 examples, 3 epochs, and as many evaluations.
    assert trained(folder, code, "first", **STORED) == (40, weights)
    assert trained(folder, code, "second", **STORED) == (0, weights)
    (sizes,) = folder.glob("stores/colours/train/observed-*/examples/field.sizes.npy")
    assert len(np.load(sizes)) == 20


def test_preprocessing_agents_with_other_settings_share_a_folder(folder, code):
    other = {**STORED, "agent.history_size": 2}
    plain = {"loader.store": "stores"}
    first = trained(folder, code, "first", **STORED)
    split = folder / "stores" / "colours" / "train"
    before = {path: path.read_bytes() for path in split.rglob("*") if path.is_file()}
    # Each builds its own store once, and none changes the files of another.
    assert trained(folder, code, "other", **other)[0] == 40
    assert trained(folder, code, "plain", **plain)[0] > 100
    assert {path: path.read_bytes() for path in before} == before
    assert len(list(split.glob("observed-*"))) == 2 and (split / "examples").is_dir()
    for name, changes in (("other", other), ("first", STORED)):
        again = trained(folder, code, f"{name} again", **changes)
        assert again[0] == 0
    assert again[1] == first[1]


@pytest.mark.parametrize(
    "changes, wanted",
    [
        ({"loader.store": None}, "there is no store to keep the result"),
        (
            {"agent.@agents": "thincdialog.Classifier.v1"},
            "does not define both observe\\(\\) and batch_act\\(\\)",
        ),
        ({"tasks.colours.@teachers": "thincdialog.Conversations.v1"}, "several turns"),
        ({}, "changes 'turns'"),
    ],
)
def test_preprocessing_that_is_impossible_is_one_line(folder, code, changes, wanted):
    if "turns" in wanted:
        (folder / "longer").touch()
    turns = [{"speaker": who, "text": who} for who in "ABAB"]
    if "several" in wanted:
        (folder / "colours.jsonl").write_text(json.dumps({"id": "c", "turns": turns}))
    with pytest.raises(ConfigError, match=f"preprocess is true, but .*{wanted}"):
        build("own.cfg", overrides={**STORED, **changes}, code=code)
