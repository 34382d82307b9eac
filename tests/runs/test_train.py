"""Whole runs, from a config to a saved model."""

import json
import subprocess
import sys
from collections import Counter
from functools import partial
from io import StringIO

import numpy
import pytest

from tests.examples.talk import write_spoken
from tests.processes import slow
from tests.training.examples import CLASSIFIER, RANKER, REPLIES, TALKS, quietly_train, weights
from thincdialog.agents import repeats
from thincdialog.api import (
    ConfigError,
    DataError,
    IterableTeacher,
    TrainingError,
    evaluate,
    load,
    registry,
)
from thincdialog.evaluation import unreachable
from thincdialog.examples import split as examples_split
from thincdialog.files.saved_model import BEST, LAST
from thincdialog.runs.run_log import read_log

LABELLED = (
    """
[paths]
train = "TRAIN"
test = null

[tasks.it]
@teachers = "thincdialog.LabelledText.v1"
train = ${paths.train}
test = ${paths.test}
"""
    + CLASSIFIER
)


def test_train_saves_what_it_reports(tmp_path):
    result, _ = quietly_train(output=tmp_path, training__max_epochs=6.0, tasks__coffee__n_train=300)
    assert result.scores["dev"]["hits@1"] > 0.2, "chance is 0.05"
    for split in ("dev", "test"):
        assert evaluate(tmp_path / BEST, split=split) == result.scores[split]
    meta = json.loads((tmp_path / BEST / "meta.json").read_text())
    assert meta["dev"]["hits@1"] == result.scores["dev"]["hits@1"]
    assert meta["step"] == result.best_step


def test_train_that_improves_nothing_says_so():
    note = "no step has improved hits@1 on dev, so the best weights are those before training."
    for rate in (0.0, 0.01):
        options = {"training__max_steps": 40, "training__optimizer__learn_rate": rate}
        result, shown = quietly_train(RANKER, **options)
        assert (note in shown) == (result.best_step == 0) == (not rate)


def test_train_saved_config_reproduces_the_run(tmp_path):
    quietly_train(output=tmp_path / "a", training__max_epochs=1.0)
    quietly_train(tmp_path / "a" / LAST / "config.cfg", tmp_path / "b")
    assert weights(tmp_path / "a") == weights(tmp_path / "b")


@pytest.mark.parametrize("optimizer", ["Adam.v1", "thincdialog.LazyAdam.v1"])
def test_train_accumulated_gradient_is_that_of_one_batch(tmp_path, optimizer):
    """Without dropout, four batches of 4 make the update of one batch of 16: there are no random
    draws, and each example brings its own candidates."""
    still = {
        "agent__model__encoder__dropout": 0.0,
        "training__max_epochs": 0.0,
        "training__max_steps": 3,
        "training__optimizer__@optimizers": optimizer,
    }
    quietly_train(output=tmp_path / "a", **still)
    quietly_train(
        output=tmp_path / "b", training__accumulate_gradient=4, world__batcher__size=4, **still
    )
    a, b = (numpy.load(tmp_path / name / LAST / "weights.npy") for name in "ab")
    numpy.testing.assert_allclose(a, b, atol=2e-5)


@registry.teachers("coffee_without_dev.v1")
def coffee_without_dev(n_train: int, n_dev: int, n_test: int, mutators=None):
    make = registry.teachers.get("thincdialog.CoffeeOrder.v1")
    teacher = make(n_train=n_train, n_dev=n_dev, n_test=n_test, mutators=mutators)
    del teacher.data["dev"]
    return teacher


def test_train_without_dev_data_keeps_the_last_weights(tmp_path):
    text = RANKER.replace("thincdialog.CoffeeOrder.v1", "coffee_without_dev.v1")
    result, _ = quietly_train(text, tmp_path)
    assert list(result.scores) == ["test"] and result.best_step == 26
    assert weights(tmp_path, BEST) == weights(tmp_path)


def test_train_not_finite_stops_and_names_the_examples():
    wild = {"learn_rate": 1e30, "grad_clip": 0.0}
    with pytest.raises(TrainingError, match=r"not finite.*Examples of the batch: .+/\d+, "):
        quietly_train(**{f"training__optimizer__{name}": n for name, n in wild.items()})


def test_train_unknown_score_names_the_one_that_was_meant(tmp_path):
    with pytest.raises(ConfigError, match="'Hits1' is not measured.* did you mean 'hits@1'"):
        quietly_train(training__score="Hits1")
    with pytest.raises(ConfigError, match="'xyz' is not measured.* accuracy, .*, mrr, [^/]*$"):
        quietly_train(training__score="xyz")
    own = '\n[evaluation.metrics.f1]\n@metrics = "thincdialog.F1.v1"\n'
    with pytest.raises(ConfigError) as caught:
        quietly_train(RANKER + own)
    assert caught.value.problems[0].hint == (
        "metrics of a config replace the default ones: add [evaluation.metrics.ranking] "
        '@metrics = "thincdialog.Ranking.v1"'
    )
    path = tmp_path / "mine.cfg"
    path.write_text(RANKER.replace("hits@1", "hits@2"))
    said = r"1 problem in .*mine.cfg\n  .*mine.cfg:43  \[training\] score"
    with pytest.raises(ConfigError, match=said):
        quietly_train(path)


def test_train_writes_nothing_for_a_bad_config(tmp_path):
    with pytest.raises(ConfigError, match="max_stepz.*max_steps"):
        quietly_train(output=tmp_path / "out", training__max_stepz=1)
    baseline = RANKER[RANKER.index("[agent]") : RANKER.index("[world]")]
    with pytest.raises(ConfigError, match=r"\[baselines.other\] has weights to train"):
        quietly_train(RANKER + baseline.replace("[agent", "[baselines.other"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_train_misses_data_before_it_writes_or_learns(tmp_path):
    config = LABELLED.replace("TRAIN", str(tmp_path / "train.jsonl"))
    (tmp_path / "train.jsonl").write_text('{"text": "a", "label": "b"}\n' * 3)
    out = tmp_path / "out"
    for changes, message in (
        ({"paths.test": str(tmp_path / "tset.jsonl")}, "tset.jsonl  file not found"),
        ({"tasks.it.train": None}, r"\[tasks.it\]  has no train data .*--paths.train FILE"),
    ):
        with pytest.raises(DataError, match=message):
            quietly_train(config, out, **changes)
        assert not out.exists()
    with pytest.raises(DataError, match="train.jsonl  the training data has only one class, 'b'"):
        quietly_train(config, out)


@registry.callbacks("test_train.Interrupt.v1")
def make_interrupt():
    def interrupt(info, agent):
        if info["step"]:
            raise KeyboardInterrupt

    return interrupt


@pytest.mark.parametrize("failing", ["reading", "learning"])
def test_train_reports_skipped_examples_also_if_it_fails(tmp_path, failing):
    config = LABELLED.replace("TRAIN", str(tmp_path / "train.jsonl"))
    row = '{"text": "a", "label": "b"}\n'
    (tmp_path / "train.jsonl").write_text(row * 30 + "{\n" + row.replace('"b"', '"c"'))
    (tmp_path / "dev.jsonl").write_text("{\n" if failing == "reading" else row)
    changes = {"tasks.it.on_bad_data": "skip", "tasks.it.dev": str(tmp_path / "dev.jsonl")}
    if failing == "learning":
        changes |= {"training.optimizer.learn_rate": 1e30, "training.optimizer.grad_clip": 0.0}
    said = StringIO()
    with pytest.raises(DataError if failing == "reading" else TrainingError):
        quietly_train(config, stderr=said, **changes)
    head = "train.jsonl  1 of 32 examples skipped (3.1 %):\n"
    assert said.getvalue().count(head) == 1
    # The message of the error is not printed twice.
    assert "dev.jsonl" not in said.getvalue()


def test_train_interrupted_says_what_is_saved(tmp_path):
    text = RANKER + '\n[training.callbacks.stop]\n@callbacks = "test_train.Interrupt.v1"\n'
    with pytest.raises(KeyboardInterrupt) as caught:
        quietly_train(text, tmp_path)
    assert str(caught.value) == str(tmp_path / LAST)
    assert load(tmp_path / LAST).meta["step"] > 0


def test_train_baselines_are_scored_with_the_model():
    text = RANKER + '\n[baselines.frequent]\n@agents = "thincdialog.MostFrequent.v1"\n'
    result, _ = quietly_train(text, training__max_steps=1)
    rows = [row[:2] for row in result.table()[1:]]
    assert rows == [[split, who] for split in ("dev", "test") for who in ("this model", "frequent")]
    assert result.baselines["frequent"]["dev"]["examples"] == result.scores["dev"]["examples"]


@registry.teachers("tests.points.v1")
def points():
    """Make points in the plane. The label is their quadrant."""

    def rows(seed):
        plane = numpy.random.default_rng(seed).normal(size=(300, 2)).astype("f")
        return [{"features": x, "labels": [f"{x[0] > 0} {x[1] > 0}"]} for x in plane]

    return IterableTeacher({"train": rows(0), "dev": rows(1), "test": rows(2)})


def test_train_a_classifier_of_features_without_text(tmp_path):
    text = '[tasks.points]\n@teachers = "tests.points.v1"\n'
    text += CLASSIFIER[CLASSIFIER.index("[agent]") :]
    text = text.replace('@models = "thincdialog.BagEncoder.v1"', '@layers = "Relu.v1"\nnO = 16')
    rate = {"training__optimizer__learn_rate": 0.05}
    result, _ = quietly_train(text, tmp_path, training__max_epochs=10.0, **rate)
    assert result.scores["test"]["accuracy"] > 0.9
    assert evaluate(tmp_path / BEST) == result.scores["test"]


@pytest.mark.slow
def test_load_answers_in_another_process(tmp_path):
    quietly_train(output=tmp_path, training__max_epochs=1.0)
    chatbot = load(tmp_path / BEST)
    here = [chatbot.respond("Good morning!"), chatbot.respond("A latte, please.")]
    code = (
        "import thincdialog, json, sys; bot = thincdialog.load(sys.argv[1]);"
        "print(json.dumps([bot.respond('Good morning!'), bot.respond('A latte, please.')]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / BEST)]
    there = subprocess.run(command, check=True, capture_output=True, text=True)
    assert json.loads(there.stdout) == here
    chatbot.reset()
    assert chatbot.respond("Good morning!") == here[0]


OLD_HOGWILD = '\n[hogwild]\nworkers = 2\nexecutor = "thread"\n'


def test_models_from_before_runners_load_and_new_runs_are_an_error(tmp_path):
    result, _ = quietly_train(output=tmp_path / "out", training__max_steps=3)
    config = tmp_path / "out" / BEST / "config.cfg"
    text = config.read_text()
    config.write_text(text[: text.index("[runner]")] + OLD_HOGWILD)
    assert evaluate(tmp_path / "out" / BEST) == result.scores["test"]
    assert load(tmp_path / "out" / BEST).respond("Good morning!")
    with pytest.raises(
        ConfigError,
        match=r"no section \[hogwild\] - take it out if workers is 0",
    ):
        quietly_train(RANKER + OLD_HOGWILD)


@pytest.fixture
def spoken(tmp_path):
    """Return overrides for a config of conversations: two files, each with conversations that are
    left out."""
    speakers = ["bot" if number % 5 == 4 else "agent" for number in range(40)]
    paths = [write_spoken(tmp_path / f"{name}.jsonl", *speakers) for name in "ab"]
    dev = write_spoken(tmp_path / "dev.jsonl", *["agent"] * 9)
    changes = {"tasks.talk.train": paths, "paths.dev": dev, "paths.test": None}
    return {**changes, "tasks.talk.label_speaker": "agent", "training.max_epochs": 2.0}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"tasks.talk.streaming": True},
        {"tasks.talk.streaming": True, "runner.@runners": "thincdialog.Hogwild.v1"},
    ],
)
def test_train_reports_how_much_is_left_out(tmp_path, spoken, more):
    left_out = dict.fromkeys(spoken["tasks.talk.train"], 8)
    result, said = quietly_train(TALKS + REPLIES, tmp_path / "out", **spoken, **more)
    for path in left_out:
        line = f"{path}  8 of 40 conversations left out: the label_speaker does not reply in them\n"
        assert said.count(line) == 1
    rows = read_log(tmp_path / "out")
    assert len(rows) > 2 and [row["left_out"] for row in rows] == [left_out] * len(rows)
    assert result.left_out == left_out


@pytest.mark.slow
def test_train_reports_what_is_left_out_if_only_processes_learn_from_it(tmp_path, spoken):
    """Each process reads a share of the stream. The agent needs none of its labels."""
    path = write_spoken(tmp_path / "a.jsonl", *["agent", "bot"] * 600)
    (tmp_path / "replies.txt").write_text("".join(f"agent {n}\n" for n in range(7)))
    agent = {"candidates": "fixed", "fixed_candidates": str(tmp_path / "replies.txt")}
    runner = {"@runners": "thincdialog.Hogwild.v1", "executor": "process"}
    more = {"tasks.talk.streaming": True, "tokenizer.@tokenizers": "thincdialog.HashNgrams.v1"}
    more |= {f"agent.{name}": value for name, value in {**agent, "block_repeats": False}.items()}
    more |= {f"runner.{name}": value for name, value in runner.items()}
    result, said = quietly_train(TALKS + REPLIES, **{**spoken, **more, "tasks.talk.train": path})
    assert result.left_out == {path: 600} and said.count("600 of 1,200 conversations left out") == 1


def test_train_says_that_fractions_of_an_epoch_need_a_known_size(tmp_path, spoken):
    spoken |= {"tasks.talk.streaming": True, "loader.shuffle_window": 8}
    spoken |= {"tokenizer.@tokenizers": "thincdialog.HashNgrams.v1", "tokenizer.n_rows": 50}
    more = {**spoken, "training.max_epochs": 0.5, "training.eval_every_epochs": 0.25}
    line = "fractions of an epoch (max_epochs, eval_every_epochs) have no effect."
    result, said = quietly_train(TALKS + REPLIES, tmp_path / "out", **more)
    assert said.count(line) == 1
    # The first epoch was trained to its end, so another limit is needed to continue.
    assert [row["epoch"] for row in read_log(tmp_path / "out")] == [0.0, 1.0]
    assert "To continue, set [training] max_epochs = 2 with --resume." in said
    more = {**spoken, "training.max_epochs": 1.0}
    _, said = quietly_train(TALKS + REPLIES, tmp_path / "whole", **more)
    assert "fractions of an epoch" not in said


def test_train_that_resumes_knows_what_was_left_out_before(tmp_path, spoken):
    """It does not read the first file again."""
    spoken |= {"tasks.talk.streaming": True, "world.batcher.size": 8, "training.max_epochs": 1.0}
    spoken |= {"loader.shuffle_window": 8, "training.checkpoint_every_steps": 1}
    config = TALKS + REPLIES + '[world]\n[world.batcher]\n@batchers = "thincdialog.Fixed.v1"\n'
    whole, _ = quietly_train(config, tmp_path / "whole", **spoken)
    quietly_train(config, tmp_path / "parts", **spoken, **{"training.max_steps": 6})
    found, _ = quietly_train(config, tmp_path / "parts", resume=True, **spoken)
    assert found.left_out == whole.left_out and len(found.left_out) == 2


def test_train_refuses_a_file_without_the_label_speaker(tmp_path, spoken):
    write_spoken(tmp_path / "b.jsonl", *["bot"] * 9)
    said = StringIO()
    with pytest.raises(DataError, match="b.jsonl  label_speaker 'agent' does not occur"):
        quietly_train(TALKS + REPLIES, tmp_path / "out", stderr=said, **spoken)
    # The message of the error is not printed twice.
    assert "b.jsonl" not in said.getvalue()


WORDS = '"thincdialog.Words.v1"'
HASHED = '"thincdialog.HashNgrams.v1"\nn_rows = 100'


FIXED = {"agent.candidates": "fixed", "agent.fixed_candidates": "replies.txt"}
VECTORS = {
    f"agent.model.encoder.init_E.{name}": value
    for name, value in (("@initializers", "thincdialog.WordVectors.v1"), ("path", "vectors.txt"))
}


@pytest.mark.parametrize(
    "runner, tokenizer, more, of_dev, of_test",
    [
        ("Alone", HASHED, {}, 0, 0),
        ("Alone", WORDS, {}, 0, 0),
        ("Hogwild", HASHED, {}, 0, 0),
        # Both splits are read once more, to draw the sample and the candidates from, and test data
        # again, to count the candidates of each sampled example.
        ("Alone", HASHED, {"evaluation.max_examples": 200, "evaluation.n_candidates": 20}, 1, 2),
        slow("Alone", HASHED, {"loader.shuffle_window": 100}, 0, 0),
        slow("Alone", HASHED, FIXED, 0, 0),
        ("Alone", WORDS, FIXED, 0, 0),
        slow("Alone", HASHED, VECTORS, 0, 0),
        ("Alone", WORDS, VECTORS, 0, 0),
    ],
)
def test_a_stream_is_read_once_before_training_and_once_per_epoch_or_evaluation(
    tmp_path, monkeypatch, runner, tokenizer, more, of_dev, of_test
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "replies.txt").write_text("".join(f"b {n}\n" for n in range(50)))
    (tmp_path / "vectors.txt").write_text(f"a{' 0.5' * 16}\n")
    for module, name in (
        (examples_split, "BEGINNING"),
        (repeats, "N_CHECKED"),
        (unreachable, "N_CHECKED"),
    ):
        monkeypatch.setattr(module, name, 300)
    begun = []

    def stream(name):
        begun.append(name)
        rows = ({"text": f"a {n}", "labels": [f"b {n % 50}"], "id": str(n)} for n in range(500))
        yield from ([row] for row in rows)

    @registry.teachers(f"test_train.Counting.{tmp_path.name}.v1")
    def counting():
        splits = {name: partial(stream, name) for name in ("train", "dev", "test")}
        return IterableTeacher(splits, streaming=True)

    config = f'[tasks.it]\n@teachers = "test_train.Counting.{tmp_path.name}.v1"\n' + REPLIES
    config = config.replace(WORDS, tokenizer)
    config += f'\n[runner]\n@runners = "thincdialog.{runner}.v1"\n'
    config += '\n[baselines.nearest]\n@agents = "thincdialog.Retrieval.v1"\n'
    more = {"training.max_epochs": 2.0, "world.batcher.size": 100, **more}
    quietly_train(config, tmp_path / "out", **more)
    # Dev data is inspected once, then evaluated before training, after each epoch and at the end.
    # The baseline reads the training data after training, and is evaluated on dev and test data.
    expected = {"train": 1 + 2 + 1, "dev": 1 + 3 + 2 + of_dev, "test": 2 + of_test}
    assert Counter(begun) == expected


@pytest.mark.parametrize(
    "max_context, expected", [(3, "50.0 % of the contexts were longer"), (0, "")]
)
def test_train_says_how_many_contexts_are_truncated(tmp_path, max_context, expected):
    """A text of 60,000 words takes no longer than a text of max_context words."""
    rows = [{"text": "hi", "label": "a"}, {"text": "word " * 60_000, "label": "b"}] * 4
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    config = LABELLED.replace("TRAIN", str(tmp_path / "a.jsonl"))
    options = {"training__max_epochs": 1.0, "agent__max_context": max_context}
    _, stderr = quietly_train(config, **options)
    found = [line for line in stderr.splitlines() if "truncated" in line]
    assert len(found) == bool(expected) and all(line.startswith(expected) for line in found)
