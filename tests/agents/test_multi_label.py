"""An agent that predicts any number of labels for a text."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import Linear, Sigmoid, Softmax, chain

from tests.agents.topics import CONFIG, WORDS, write_topics
from tests.training.examples import quietly_train, weights
from thincdialog.agents.multi_label import DEFAULT, MultiLabelAgent, best_threshold
from thincdialog.api import (
    ConfigError,
    DataError,
    Experiment,
    IterableTeacher,
    TrainingError,
    evaluate,
    load,
)
from thincdialog.data import tokenizers
from thincdialog.inspection.display import display_data
from thincdialog.messages import Message
from thincdialog.models.bag_encoder import BagEncoder
from thincdialog.models.classifier import Classifier

SAID = "thanks, but my parcel is late"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_topics(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return the result of a run. Its folder contains the data, too."""
    folder = tmp_path_factory.mktemp("topics")
    write_topics(folder)
    paths = {"train": "train.json", "dev": "dev.json", "layout": "topics.yml"}
    absolute = {f"tasks__topics__{name}": str(folder / file) for name, file in paths.items()}
    return quietly_train(CONFIG, folder / "out", **absolute)[0]


def agent_of(rows, **settings):
    """Build an agent that is initialized with the labels of some texts."""
    teacher = IterableTeacher({"train": [{"text": t, "labels": labels} for t, labels in rows]})
    agent = MultiLabelAgent(Classifier(BagEncoder(8)), **settings)
    agent.initialize(
        teacher.for_split("train", training=True), tokenizer=tokenizers.WordTokenizer()
    )
    return agent


def test_multi_label_learns_all_labels_and_none(trained):
    assert trained.scores["dev"]["micro_f1"] > 0.99 and trained.scores["dev"]["exact_match"] > 0.95
    assert trained.scores["dev"]["examples"] == 40
    assert evaluate(trained.output, split="dev") == trained.scores["dev"]
    agent = load(trained.output).agent
    reply, other = agent.batch_act([Message(text=SAID), Message(text="hello well")])
    assert set(reply["predicted_labels"]) == {"thank", "parcel", "late"}
    assert reply["text"] == ", ".join(reply["predicted_labels"])
    assert reply["text_candidates"][3] == "refund"  # The least probable label is ranked, too.
    assert (other["predicted_labels"], other["text"]) == ([], "")


def test_multi_label_counts_and_trains_on_texts_without_labels(folder):
    (folder / "train.json").write_text(
        json.dumps([{"text": "a", "intents": ["x"]}, {"text": "b", "intents": []}] * 8)
    )
    config = CONFIG.replace('dev = "dev.json"', "")
    result, _ = quietly_train(config, folder / "out")
    assert result.train_examples == {"": 16}
    log = [json.loads(line) for line in (folder / "out" / "log.jsonl").read_text().splitlines()]
    assert log[-1]["examples"] == 16 * 20
    answers = load(folder / "out").agent.batch_act([Message(text="a"), Message(text="b")])
    assert [answer["predicted_labels"] for answer in answers] == [["x"], []]


def test_multi_label_answers_do_not_depend_on_the_batch(trained):
    agent = load(trained.output).agent
    texts = [f"{SAID} {word}" for words in WORDS.values() for word in words]
    with agent.evaluating():
        together = agent.batch_act([Message(text=text) for text in texts])
        alone = [agent.batch_act([Message(text=text)])[0] for text in texts]
    assert [one["probabilities"] for one in together] == [one["probabilities"] for one in alone]


# --- thresholds ---------------------------------------------------------------------


def f1_at(threshold, probabilities, targets):
    right = found = 0
    for probability, target in zip(probabilities, targets):
        found += probability >= threshold
        right += probability >= threshold and target == 1
    return 2 * right / (found + sum(targets))


@given(
    st.lists(
        st.tuples(st.floats(2**-6, 1 - 2**-6, width=32), st.sampled_from([0.0, 1.0])),
        min_size=1,
        max_size=12,
    )
)
def test_best_threshold_has_the_highest_f1_of_all(rows):
    probabilities, targets = (np.array(column, dtype="f") for column in zip(*rows))
    found = np.float32(best_threshold(probabilities, targets))
    if not targets.any():
        assert found == DEFAULT
        return
    best = max(f1_at(each, probabilities, targets) for each in probabilities)
    assert f1_at(found, probabilities, targets) == best


def test_best_threshold_is_halfway_to_what_it_excludes():
    probabilities = np.array([0.25, 0.75, 0.125], dtype="f")
    assert best_threshold(probabilities, np.array([0, 1, 0], dtype="f")) == 0.5
    assert best_threshold(probabilities, np.array([1, 1, 0], dtype="f")) == 0.1875


def test_multi_label_chooses_thresholds_on_dev_and_saves_them(folder):
    few = {
        "training__max_epochs": 3,
        "training__eval_every_epochs": 1,
        "training__optimizer__learn_rate": 0.01,
    }
    fixed, _ = quietly_train(CONFIG, folder / "fixed", **few)
    tuned, _ = quietly_train(CONFIG, folder / "tuned", agent__threshold="dev", **few)
    assert tuned.scores["dev"]["macro_f1"] > fixed.scores["dev"]["macro_f1"] + 0.1
    assert evaluate(folder / "tuned", split="dev") == tuned.scores["dev"]
    # The other weights are the same, and a number in the config replaces the chosen thresholds.
    last = "tuned/model-last", "fixed/model-last"
    tuned_last, fixed_last = (
        evaluate(folder / name, split="dev", overrides={"agent.threshold": 0.5}) for name in last
    )
    assert tuned_last == fixed_last
    model = load(folder / "tuned").agent.model
    assert len(set(model.get_param("thresholds").tolist()) - {DEFAULT}) >= 3


@pytest.mark.parametrize("averages", [True, False])
def test_multi_label_that_resumes_chooses_the_same_thresholds(folder, averages):
    choices = {
        "agent__threshold": "dev",
        "training__optimizer__use_averages": averages,
        "training__eval_every_epochs": 1,
    }
    quietly_train(CONFIG, folder / "whole", training__max_epochs=4, **choices)
    quietly_train(CONFIG, folder / "parts", training__max_epochs=2, **choices)
    quietly_train(CONFIG, folder / "parts", resume=True, training__max_epochs=4, **choices)
    for name in ("model-best", "model-last"):
        assert weights(folder / "parts", name) == weights(folder / "whole", name)


def test_multi_label_without_dev_data_cannot_choose_thresholds(folder):
    with pytest.raises(ConfigError, match="thresholds on dev data.*set threshold to a number"):
        quietly_train(CONFIG.replace('dev = "dev.json"', ""), agent__threshold="dev")


def test_multi_label_says_which_scores_there_are(folder):
    with pytest.raises(ConfigError, match="'accuracy' is not measured .* one of: exact_match"):
        quietly_train(CONFIG, training__score="accuracy")


# --- errors -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows, settings, what",
    [
        (
            [("a", ["x"])],
            {"labels": ["y"]},
            "example 0/0 has the label 'x', which is not among the labels",
        ),
        ([("a", []), ("b", [])], {}, "no training example has a label"),
    ],
)
def test_multi_label_data_that_does_not_fit(rows, settings, what):
    with pytest.raises(DataError, match=what):
        agent_of(rows, **settings)


@pytest.mark.parametrize("last", [Softmax(2, 4), Sigmoid(2, 4)])
def test_multi_label_refuses_probabilities_in_place_of_logits(last):
    with pytest.raises(ValueError, match="ends in a softmax or sigmoid"):
        MultiLabelAgent(chain(Linear(4, 4), last))


@pytest.mark.parametrize("threshold", [-0.1, 1.5])
def test_multi_label_threshold_out_of_range(threshold):
    with pytest.raises(ValueError, match="expected 0.0 to 1.0, or 'dev'"):
        MultiLabelAgent(Classifier(BagEncoder(8)), threshold=threshold)


def test_multi_label_refuses_a_label_that_it_was_not_initialized_with():
    agent = agent_of([("a", ["x"]), ("b", ["y"])])
    with pytest.raises(DataError, match="'z' is not among the labels"):
        agent.batch_act([Message(text="a", labels=["z"])])


def test_multi_label_loss_that_is_not_finite_names_the_examples():
    agent = agent_of([("a", ["x"])])
    agent.weights[:] = np.nan
    with pytest.raises(TrainingError, match="loss is not finite.*: q"):
        agent.batch_act([Message(text="a", labels=["x"], id="q")])


def test_multi_label_keeps_the_labels_of_the_model_that_it_begins_with(trained, folder):
    rows = [{"text": "hello hi", "intents": ["greet"]}, {"text": SAID, "intents": ["parcel"]}]
    (folder / "train.json").write_text(json.dumps(rows * 8))
    before = str(trained.output / "model-best")
    _, shown = quietly_train(CONFIG, folder / "more", training__init_from=before)
    assert "labels: 4 of the saved model, 1 new" in shown
    assert Experiment.from_model(folder / "more").agent.classes == [*sorted(WORDS), "greet"]


def test_multi_label_data_is_displayed_with_texts_without_labels(folder):
    shown = [message["eval_labels"] for message, _ in display_data(CONFIG, n_examples=0)]
    assert len(shown) == 80 and [] in shown
