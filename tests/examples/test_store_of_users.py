"""A custom store, from a file given with ``--code``, that trains an agent of this package."""

import json
from collections import Counter

import pytest

from tests.cli.conftest import run as run_fixture
from tests.training.examples import REPLIES
from thincdialog.api import ConfigError, MemoryStore, Teacher, registry
from thincdialog.mutators.flatten import Flatten

run = run_fixture

CODE = '''
import numpy as np

from thincdialog.api import Store, Teacher, registry

WORDS = ["red", "green", "amber", "blue", "here", "there", "yonder"]
ANSWERS = np.array(["stop", "go", "wait", "swim"])


class Arrays(Store):
    """Examples as arrays of numbers of words, one a shard, as they may lie on disk."""

    names = ("id", "text", "labels")

    def __init__(self, shards):
        self.shards, self.looked_at = shards, []
        self.firsts = np.cumsum([0, *map(len, shards)])
        self.starts = range(int(self.firsts[-1]) + 1)

    def cells(self, name, rows):
        self.looked_at.extend(rows.tolist() if name == "text" else ())
        shards = np.searchsorted(self.firsts, rows, side="right") - 1
        found = [self.shards[s][row - self.firsts[s]] for s, row in zip(shards, rows)]
        if name == "id":
            return [str(row) for row in rows]
        if name == "text":
            return [" ".join(WORDS[word] for word in words) for words in found]
        if name == "labels":
            return [[str(ANSWERS[words[0]])] for words in found]
        return [None] * len(rows)


TRAIN = []


@registry.teachers("arrays.v1")
def arrays(n_shards: int) -> Teacher:
    """Colours at places, cut into shards.

    n_shards (int): How many.
    """
    pairs = np.array([(colour, place) for place in (4, 5, 6) for colour in range(4)])
    shards = np.array_split(pairs, n_shards)
    sources = {split: Arrays(shards) for split in ("train", "dev")}
    TRAIN.append(sources["train"])
    return Teacher(sources, shuffle_window=5)
'''
CONFIG = """
[tasks.arrays]
@teachers = "arrays.v1"
n_shards = 3
%s%s
[world.batcher]
@batchers = "thincdialog.Words.v1"
budget = 20

[training]
score = "accuracy"
max_epochs = 40
eval_every_epochs = 10

[training.optimizer]
learn_rate = 0.02
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    path = tmp_path_factory.mktemp("code") / "arrays.py"
    path.write_text(CODE)
    return path


@pytest.mark.parametrize("n_tasks", [1, 2])
def test_custom_store_trains_an_agent(run, code, tmp_path, monkeypatch, n_tasks):
    monkeypatch.chdir(tmp_path)
    second = '\n[tasks.more]\n@teachers = "arrays.v1"\nn_shards = 2\n'
    (tmp_path / "own.cfg").write_text(CONFIG % (second if n_tasks == 2 else "", REPLIES))
    for command in ("-o whole", "-o parts --training.max_epochs 13", "-o parts --resume"):
        exit_code, _, err = run(f"train own.cfg --code {code} {command}")
        assert exit_code == 0, err
    scores = json.loads((tmp_path / "whole" / "scores.json").read_text())["scores"]["dev"]
    assert scores["accuracy"] == 1.0
    whole, parts = (tmp_path / name / "model-last" / "weights.npy" for name in ("whole", "parts"))
    assert whole.read_bytes() == parts.read_bytes()
    # A text is read for the vocabulary, for sizes, to recognise changed data, and to be encoded.
    # After that its row is known.
    stores = registry.teachers.get("arrays.v1").__globals__["TRAIN"]
    assert all(max(Counter(store.looked_at).values(), default=0) <= 5 for store in stores)


def test_store_refuses_settings_that_would_change_its_rows():
    store = MemoryStore()
    for settings in ({"streaming": True}, {"mutators": [Flatten()]}, {"candidates": list}):
        with pytest.raises(
            ConfigError, match="the split 'train' is a store, which cannot be changed"
        ):
            Teacher({"train": store}, **settings)
    with pytest.raises(ConfigError, match="the store of the split 'train' has no field 'id'"):
        Teacher({"train": store})
