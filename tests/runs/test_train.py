"""Whole runs, from a config to a saved model."""

import io
import json
import subprocess
import sys

import numpy
import pytest

from tests.training.examples import RANKER
from thincdialog.api import (
    ConfigError,
    DataError,
    IterableTeacher,
    OutputError,
    TrainingError,
    evaluate,
    load,
    registry,
    train,
)
from thincdialog.runs.run_keeper import BEST, LAST

LABELLED = """
[paths]
train = "TRAIN"
test = null

[tasks.it]
@teachers = "thincdialog.LabelledText.v1"
train = ${paths.train}
test = ${paths.test}

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.Classifier.v1"

[agent.model]
@models = "thincdialog.Classifier.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
"""


def run(output=None, force=False, resume=False, **overrides):
    changes = {name.replace("__", "."): value for name, value in overrides.items()}
    return train(
        RANKER,
        output=output,
        overrides=changes,
        force=force,
        resume=resume,
        stdout=io.StringIO(),
        stderr=io.StringIO(),
    )


def weights(folder):
    return (folder / "weights.npy").read_bytes()


def test_train_saves_what_it_reports(tmp_path):
    result = run(tmp_path / "out", training__max_epochs=6.0, tasks__coffee__n_train=300)
    assert result.scores["dev"]["hits@1"] > 0.2, "chance is 0.05"
    for split in ("dev", "test"):
        report = evaluate(tmp_path / "out" / BEST, split=split)
        assert report == result.scores[split]
    meta = json.loads((tmp_path / "out" / BEST / "meta.json").read_text())
    assert meta["dev"]["hits@1"] == result.scores["dev"]["hits@1"]
    assert meta["step"] == result.best_step


def test_train_saved_config_reproduces_the_run(tmp_path):
    run(tmp_path / "a", training__max_epochs=1.0)
    saved = tmp_path / "a" / LAST / "config.cfg"
    train(saved, output=tmp_path / "b", stdout=io.StringIO(), stderr=io.StringIO())
    assert weights(tmp_path / "a" / LAST) == weights(tmp_path / "b" / LAST)


@pytest.mark.parametrize(
    "limits,steps",
    # 40 dialogues of the seed have 202 turns: 13 batches of 16 an epoch.
    [
        ({"max_epochs": 1.0}, 1.0),
        ({"max_epochs": 2.0}, 2.0),
        ({"max_epochs": 0.5}, 0.5),
        ({"max_epochs": 0.0, "max_steps": 5}, None),
    ],
)
def test_train_ends_at_the_limit(tmp_path, limits, steps):
    overrides = {f"training__{name}": value for name, value in limits.items()}
    run(tmp_path / "out", **overrides)
    meta = json.loads((tmp_path / "out" / LAST / "meta.json").read_text())
    if steps is None:
        assert meta["step"] == 5
        assert meta["examples"] == 80
    else:
        assert steps <= meta["epoch"] < steps + 0.1
        if steps == int(steps):
            n_examples = meta["examples"] / steps
            assert n_examples == len(list(_coffee_examples()))


def _coffee_examples():
    teacher = registry.teachers.get("thincdialog.CoffeeOrder.v1")(n_train=40, n_dev=1, n_test=1)
    return teacher.for_split("train").examples()


@pytest.mark.parametrize("optimizer", ["Adam.v1", "thincdialog.LazyAdam.v1"])
def test_train_accumulated_gradient_is_that_of_one_batch(tmp_path, optimizer):
    """Without dropout, four batches of 4 make the update of one batch of 16: what is
    drawn does not matter then, and candidates are the message's own."""
    still = {
        "agent__model__encoder__dropout": 0.0,
        "training__max_epochs": 0.0,
        "training__optimizer__@optimizers": optimizer,
    }
    run(tmp_path / "a", training__max_steps=3, **still)
    run(
        tmp_path / "b",
        training__max_steps=3,
        training__accumulate_gradient=4,
        world__batcher__size=4,
        **still,
    )
    a, b = (numpy.load(tmp_path / name / LAST / "weights.npy") for name in "ab")
    numpy.testing.assert_allclose(a, b, atol=2e-5)


def test_train_without_dev_data_keeps_the_last_weights(tmp_path):
    text = RANKER.replace("thincdialog.CoffeeOrder.v1", "coffee_without_dev.v1")
    registry.teachers("coffee_without_dev.v1", func=_coffee_without_dev)
    result = train(
        text,
        output=tmp_path / "out",
        stdout=io.StringIO(),
        stderr=io.StringIO(),
    )
    assert list(result.scores) == ["test"]
    assert weights(tmp_path / "out" / BEST) == weights(tmp_path / "out" / LAST)


def _coffee_without_dev(n_train: int, n_dev: int, n_test: int, mutators=None):
    make = registry.teachers.get("thincdialog.CoffeeOrder.v1")
    teacher = make(n_train=n_train, n_dev=n_dev, n_test=n_test, mutators=mutators)
    del teacher._data["dev"]
    return teacher


def test_train_not_finite_stops_and_names_the_examples(tmp_path):
    with pytest.raises(TrainingError, match=r"not finite.*Examples of the batch: .+/\d+, "):
        run(
            tmp_path / "out",
            training__optimizer__learn_rate=1e30,
            training__optimizer__grad_clip=0.0,
        )


def test_train_unknown_score_names_the_one_that_was_meant():
    with pytest.raises(ConfigError, match="'Hits1' is not measured.* did you mean 'hits@1'"):
        run(training__score="Hits1")
    with pytest.raises(ConfigError, match="'xyz' is not measured.* accuracy, .*, mrr, [^/]*$"):
        run(training__score="xyz")


def test_train_config_found_wrong_with_the_data_leaves_the_folder_as_it_was(tmp_path):
    """The score is known with the first evaluation only."""
    for folder in (tmp_path / "new", tmp_path):
        with pytest.raises(ConfigError, match="is not measured"):
            run(folder, training__score="xyz")
    assert list(tmp_path.iterdir()) == []
    run(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError):
        run(tmp_path, training__score="xyz", resume=True)
    assert sorted(tmp_path.rglob("*")) == before


def test_train_a_score_that_other_metrics_replaced_says_what_to_add():
    own = '\n[evaluation.metrics.f1]\n@metrics = "thincdialog.F1.v1"\n'
    with pytest.raises(ConfigError) as caught:
        train(RANKER + own, stdout=io.StringIO(), stderr=io.StringIO())
    assert caught.value.problems[0].hint == (
        "metrics of a config replace the default ones: add [evaluation.metrics.ranking] "
        '@metrics = "thincdialog.Ranking.v1"'
    )


def test_train_refuses_a_folder_that_is_not_empty(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="not empty.*--force"):
        run(tmp_path)
    run(tmp_path, force=True, training__max_steps=1)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / BEST / "weights.npy").is_file()


def test_train_writes_nothing_for_a_bad_config(tmp_path):
    with pytest.raises(ConfigError, match="max_stepz.*max_steps"):
        run(tmp_path / "out", training__max_stepz=1)
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
            train(config, output=out, overrides=changes)
        assert not out.exists()
    with pytest.raises(DataError, match="train.jsonl  the training data has only one class, 'b'"):
        train(config, output=out)


def test_train_names_the_config_of_what_shows_with_the_data(tmp_path):
    path = tmp_path / "mine.cfg"
    path.write_text(RANKER.replace("hits@1", "hits@2"))
    with pytest.raises(ConfigError, match=r"1 problem in .*mine.cfg\n  \[training\] score"):
        train(path, stdout=io.StringIO(), stderr=io.StringIO())


def test_train_force_replaces_models_only(tmp_path):
    (tmp_path / BEST).mkdir()
    (tmp_path / BEST / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="model-best  is no saved model"):
        run(tmp_path, force=True)
    assert (tmp_path / BEST / "notes.txt").read_text() == "mine"


def test_train_interrupted_tells_what_is_saved(tmp_path):
    @registry.callbacks("test_train.Interrupt.v1")
    def make_interrupt():
        def interrupt(info, agent):
            if info["step"]:
                raise KeyboardInterrupt

        return interrupt

    text = RANKER + '\n[training.callbacks.stop]\n@callbacks = "test_train.Interrupt.v1"\n'
    with pytest.raises(KeyboardInterrupt) as caught:
        train(text, output=tmp_path, stdout=io.StringIO(), stderr=io.StringIO())
    assert str(caught.value) == str(tmp_path / LAST)
    assert load(tmp_path / LAST).meta["step"] > 0


def test_train_baselines_stand_beside_the_model(tmp_path):
    text = RANKER + '\n[baselines.frequent]\n@agents = "thincdialog.MostFrequent.v1"\n'
    result = train(text, stdout=io.StringIO(), stderr=io.StringIO())
    table = result.table()
    assert [row[:2] for row in table[1:]] == [
        ["dev", "this model"],
        ["dev", "frequent"],
        ["test", "this model"],
        ["test", "frequent"],
    ]
    assert result.baselines["frequent"]["dev"]["examples"] == result.scores["dev"]["examples"]


def test_train_baseline_with_weights_is_refused_before_any_work(tmp_path):
    text = RANKER + (
        '\n[baselines.other]\n@agents = "thincdialog.Ranker.v1"\n'
        '\n[baselines.other.model]\n@models = "thincdialog.BiEncoder.v1"\n'
        '\n[baselines.other.model.encoder]\n@models = "thincdialog.BagEncoder.v1"\n'
    )
    with pytest.raises(ConfigError, match=r"\[baselines.other\] has weights to train"):
        train(text, output=tmp_path / "out", stdout=io.StringIO(), stderr=io.StringIO())
    assert not (tmp_path / "out").exists()


FEATURES = """
[tasks.points]
@teachers = "tests.points.v1"

[agent]
@agents = "thincdialog.Classifier.v1"

[agent.model]
@models = "thincdialog.Classifier.v1"

[agent.model.encoder]
@layers = "Relu.v1"
nO = 16

[training]
max_epochs = 20.0

[training.optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.02
"""


@registry.teachers("tests.points.v1")
def points():
    """Points in the plane: which quarter?"""

    def rows(seed):
        plane = numpy.random.default_rng(seed).normal(size=(300, 2)).astype("f")
        return [{"features": x, "labels": [f"{x[0] > 0} {x[1] > 0}"]} for x in plane]

    return IterableTeacher({"train": rows(0), "dev": rows(1), "test": rows(2)})


def test_train_a_classifier_of_features_without_text(tmp_path):
    result = train(FEATURES, output=tmp_path / "o", stdout=io.StringIO(), stderr=io.StringIO())
    assert result.scores["test"]["accuracy"] > 0.9
    assert evaluate(tmp_path / "o" / BEST) == result.scores["test"]


def test_load_answers_in_another_process(tmp_path):
    run(tmp_path / "out", training__max_epochs=1.0)
    chatbot = load(tmp_path / "out" / BEST)
    here = [chatbot.respond("Good morning!"), chatbot.respond("A latte, please.")]
    code = (
        "import thincdialog, json, sys; bot = thincdialog.load(sys.argv[1]);"
        "print(json.dumps([bot.respond('Good morning!'), bot.respond('A latte, please.')]))"
    )
    there = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "out" / BEST)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(there.stdout) == here
    chatbot.reset()
    assert chatbot.respond("Good morning!") == here[0]


def test_train_an_agent_without_weights(tmp_path):
    text = RANKER[: RANKER.index("[tokenizer]")] + (
        '[agent]\n@agents = "thincdialog.MostFrequent.v1"\n\n[training]\nscore = "hits@1"\n'
    )
    result = train(
        text,
        output=tmp_path / "out",
        stdout=io.StringIO(),
        stderr=io.StringIO(),
    )
    assert evaluate(tmp_path / "out" / BEST) == result.scores["test"]
