"""A custom learner without a Thinc model, in a file given with ``--code``. All commands work with
it as with built-in agents."""

import json

import numpy as np
import pytest

from tests.agents import colours
from tests.cli.conftest import run as run_fixture
from tests.processes import slow
from thincdialog.api import BatchWorld, IterableTeacher, Learner, Message
from thincdialog.batchers import Fixed
from thincdialog.protocol import NO_STEP, StepReport

run = run_fixture

CODE = '''
import json
import re
import zlib

import numpy as np

from thincdialog.api import Learner, Message, registry
from thincdialog.protocol import NO_STEP, StepReport


@registry.agents("perceptron.v1")
class Perceptron(Learner):
    """Scores classes by words; a wrong answer moves the weights of its words.

    n_rows (int): Rows of weights; words are mapped to rows by their hashes.
    """

    id = "perceptron"

    def __init__(self, n_rows: int = 512):
        self.n_rows = n_rows
        self.classes = []
        self.batches = []

    def replica(self):
        twin = self.clone()
        twin.batches = []
        return twin

    def initialize(self, train, *, tokenizer=None, seed=0, progress=None):
        self.classes = sorted(set(train.all_labels()))
        size = self.n_rows * len(self.classes)
        self.weights = np.random.default_rng(seed).normal(0, 0.1, size).astype("f")

    def to_disk(self, folder):
        (folder / "classes.json").write_text(json.dumps(self.classes))
        np.save(folder / "weights.npy", self.weights)

    def from_disk(self, folder, *, tokenizer=None):
        self.classes = json.loads((folder / "classes.json").read_text())
        self.weights = np.load(folder / "weights.npy")

    def rows(self, text):
        return [zlib.crc32(word.encode()) % self.n_rows for word in re.findall(r"\\w+", text)]

    def scores(self, text):
        table = self.weights.reshape(self.n_rows, -1)
        return table[self.rows(text)].sum(axis=0)

    @property
    def n_gathered(self):
        return sum(map(len, self.batches))

    def learn(self, batch):
        self.batches = [*self.batches, list(batch)]

    def losses(self):
        for batch in self.batches:
            for message in batch:
                scores = self.scores(message["text"])
                right = self.classes.index(message["labels"][0])
                yield message, right, scores, max(0.0, float(scores.max() - scores[right]))

    def gathered_loss(self):
        return sum(loss for *_, loss in self.losses()) / self.n_gathered

    def update(self, optimizer):
        if not self.batches:
            return NO_STEP
        total = square = n_words = 0.0
        table = self.weights.reshape(self.n_rows, -1)
        for message, right, scores, loss in self.losses():
            rows, wrong = self.rows(message["text"]), int(scores.argmax())
            if wrong != right:
                np.add.at(table, (rows, right), optimizer.learn_rate)
                np.add.at(table, (rows, wrong), -optimizer.learn_rate)
                square += 2 * len(rows)
            total += loss
            n_words += len(rows)
        optimizer.step_schedules()
        report = StepReport(
            self.n_gathered,
            total,
            n_words,
            "tokens",
            square**0.5,
            {"tokens": int(n_words), "cells": int(n_words)},
        )
        self.batches = []
        return report

    def answer(self, batch):
        ranked = [np.argsort(-self.scores(message["text"])) for message in batch]
        return [
            Message(text=self.classes[order[0]], text_candidates=[self.classes[n] for n in order])
            for order in ranked
        ]
'''
CONFIG = """
[tasks.colours]
@teachers = "thincdialog.LabelledText.v1"
train = "colours.jsonl"
dev = "colours.jsonl"

[agent]
@agents = "perceptron.v1"

[world.batcher]
size = 4

[training]
score = "accuracy"
max_epochs = 0
max_steps = 60
eval_every_steps = 20

[training.optimizer]
@optimizers = "thincdialog.SparseSGD.v1"
learn_rate = 0.1
"""


ROWS = colours.examples({"red": "stop", "green": "go", "amber": "wait", "blue": "swim"})


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """Write the file once, because registered names are permanent."""
    path = tmp_path_factory.mktemp("code") / "own.py"
    path.write_text(CODE)
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "own.cfg").write_text(CONFIG)
    lines = [json.dumps({"text": row["text"], "label": row["labels"][0]}) for row in ROWS]
    (tmp_path / "colours.jsonl").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_well(run, line):
    """Run a command that succeeds. Return its output."""
    code, out, err = run(line)
    assert code == 0, err
    return out


def test_custom_learner_is_trained_saved_and_used_by_the_commands(run, code, folder, monkeypatch):
    table = run_well(run, f"train own.cfg --code {code} -o whole")
    scores = json.loads((folder / "whole" / "scores.json").read_text())["scores"]["dev"]
    assert scores["accuracy"] == 1.0
    rows = [json.loads(row) for row in (folder / "whole" / "log.jsonl").read_text().splitlines()]
    assert rows[-1]["step"] == 60 and rows[-1]["loss_per_token"] < rows[1]["loss_per_token"]
    assert rows[-1]["loss_per_example"] is None and rows[-1]["tokens_per_second"] > 0
    assert f"{rows[-1]['loss_per_token']:.4f}/token" in table
    # A resumed run makes the same steps.
    run_well(run, f"train own.cfg --code {code} -o parts --training.max_steps 25")
    run_well(run, f"train own.cfg --code {code} -o parts --resume")
    whole, parts = (folder / name / "model-last" / "weights.npy" for name in ("whole", "parts"))
    assert whole.read_bytes() == parts.read_bytes()
    # Another run begins with these weights; with a learning rate of 0 they do not change.
    begin = "--init-from whole/model-last --training.max_steps 1"
    still = "--training.optimizer.learn_rate 0 --training.max_epochs 0"
    exit_code, _, err = run(f"train own.cfg --code {code} -o more {begin} {still}")
    assert exit_code == 0 and "Starting from whole/model-last (perceptron.v1):" in err
    assert (folder / "more" / "model-last" / "weights.npy").read_bytes() == whole.read_bytes()
    # A saved model scores and answers as before.
    out = run_well(run, f"evaluate whole/model-best --split dev --code {code} --json")
    assert json.loads(out)["accuracy"] == scores["accuracy"]
    (folder / "asked.txt").write_text("green there\n")
    with (folder / "asked.txt").open() as asked:
        monkeypatch.setattr("sys.stdin", asked)
        assert run_well(run, f"chat whole/model-best --code {code}").strip() == "go"


def test_learner_that_reads_no_tokens_is_trained_from_a_store(run, code, folder):
    tokenizer = '[tokenizer]\n@tokenizers = "thincdialog.Words.v1"\n'
    (folder / "own.cfg").write_text(CONFIG + tokenizer)
    run_well(run, f"train own.cfg --code {code} -o out --loader.store stores")
    assert not list((folder / "stores").glob("tokenizer-*"))


WORKERS = """
[runner]
@runners = "thincdialog.Hogwild.v1"
workers = 2
executor = "%s"
"""


@pytest.mark.parametrize(
    "executor, optimizer",
    # This learner never calls the optimizer, so there are no averages of its weights.
    [("thread", 'Adam.v1"\nuse_averages = true'), slow("process", 'thincdialog.SparseSGD.v1"')],
)
def test_custom_learner_trains_with_several_workers(run, code, folder, executor, optimizer):
    config = CONFIG.replace('thincdialog.SparseSGD.v1"', optimizer) + WORKERS % executor
    (folder / "own.cfg").write_text(config)
    run_well(run, f"train own.cfg --code {code} -o two")
    scores = json.loads((folder / "two" / "scores.json").read_text())["scores"]["dev"]
    assert scores["accuracy"] == 1.0
    weights = np.load(folder / "two" / "model-best" / "weights.npy")
    assert np.abs(weights).max() > 0.3


def test_learner_that_replaces_the_shared_weights_is_an_error(run, folder):
    last = "        self.batches = []\n        return report"
    text = CODE.replace(last, f"        self.weights = self.weights * 1\n{last}")
    text = text.replace("perceptron.v1", "leaving.v1")
    (folder / "leaving.py").write_text(text)
    config = CONFIG.replace("perceptron.v1", "leaving.v1") + WORKERS % "thread"
    (folder / "own.cfg").write_text(config)
    exit_code, _, err = run("train own.cfg --code leaving.py -o two")
    assert exit_code == 1 and "Perceptron.update replaced the array of weights" in err
    assert "change them in place" in err and "Traceback" not in err


class Noting(Learner):
    """Keeps the messages that it had to train on and to answer."""

    def __init__(self):
        self.weights = np.arange(4, dtype="f")
        self.trained, self.answered, self.n_changes = [], [], 0

    def learn(self, batch):
        self.trained += [message["text"] for message in batch]

    def answer(self, batch):
        self.answered += [message["text"] for message in batch]
        return [Message(text="yes")] * len(batch)

    def weights_changed(self):
        self.n_changes += 1


def test_learner_trains_on_labels_and_answers_batches_without_labels():
    agent = Noting()
    told = [Message(text="a", labels=["x"]), Message(text="b"), Message(text="c", labels=[])]
    assert list(agent.batch_act(told)) == [{}, {}, {}]
    assert agent.trained == ["a"] and not agent.answered
    assert [reply["text"] for reply in agent.batch_act(told[1:])] == ["yes", "yes"]
    assert agent.answered == ["b", "c"] and agent.n_weights == 4
    assert NO_STEP == StepReport(0) and NO_STEP.unit == "examples"


def test_learner_uses_other_weights_temporarily_and_restores_its_own():
    agent = Noting()
    before, other = agent.weights.copy(), np.full(4, 7, dtype="f")
    with pytest.raises(KeyError), agent.with_weights(other):
        assert (agent.weights == 7).all() and agent.n_changes == 1
        agent.weights[0] = 9
        raise KeyError
    assert agent.weights.tobytes() == before.tobytes() and agent.n_changes == 2
    agent.use_weights(other)
    assert agent.weights is other


@pytest.mark.parametrize("method", ["observe", "self_observe"])
def test_learner_with_an_observe_of_its_own_observes_single_turns(method):
    heard = []

    def note(self, message):
        heard.append(message.get("text"))
        return getattr(super(own, self), method)(message)

    own = type("Own", (Noting,), {method: note})
    made = IterableTeacher({"train": [[(f"q{n}", "x")] for n in range(5)]})
    world = BatchWorld(made.for_split("train", training=True), own(), Fixed(2))
    while not world.epoch_done():
        world.parley()
    assert len(heard) == 5 and Noting.takes_batches
