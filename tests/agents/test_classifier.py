"""The classifier: classes, weights, rejection, features."""

import numpy
import pytest

from thincdialog.api import (
    PARTNER,
    ConfigError,
    DataError,
    IterableTeacher,
    Message,
    TrainingError,
    registry,
)
from thincdialog.ops.choice import get_dialog_ops, using_ops

from . import colours

ROWS = [
    {"text": f"{word} {n}", "labels": [label]}
    for n in range(4)
    for word, label in (("hello", "greet"), ("bye", "leave"), ("pay", "bill"))
]


def teacher_of(rows):
    return IterableTeacher({"train": rows}).for_split("train", training=True)


def build(rows, *, encoder=None, tokenizer=True, **options):
    train = teacher_of(rows)
    with using_ops(get_dialog_ops(-1)):
        if encoder is None:
            encoder = registry.models.get("thincdialog.BagEncoder.v1")(width=16)
        model = registry.models.get("thincdialog.Classifier.v1")(encoder)
        agent = registry.agents.get("thincdialog.Classifier.v1")(model, **options)
        words = registry.tokenizers.get("thincdialog.Words.v1")() if tokenizer else None
        agent.initialize(train, tokenizer=words, seed=0)
    return agent, train


def learn(agent, teacher, epochs=20):
    optimizer = registry.optimizers.get("Adam.v1")(0.02)
    colours.learn(agent, teacher, optimizer, epochs)


def answers(agent, *texts, **fields):
    messages = [Message(text=text, episode_done=True, **fields) for text in texts]
    return list(agent.batch_act(agent.batch_observe(messages)))


def test_classifier_learns_classes_from_data():
    agent, teacher = build(ROWS)
    assert agent.classes == ["bill", "greet", "leave"]
    learn(agent, teacher)
    replies = answers(agent, "hello 2", "bye 2", "pay 9")
    assert [reply["text"] for reply in replies] == ["greet", "leave", "bill"]
    assert all(sorted(reply["text_candidates"]) == agent.classes for reply in replies)


def test_classifier_given_classes_keep_their_order():
    agent, _ = build(ROWS, classes=["leave", "greet", "bill", "other"])
    assert agent.classes == ["leave", "greet", "bill", "other"]


def test_classifier_label_outside_the_given_classes():
    with pytest.raises(DataError, match="'bill', which is not among the classes"):
        build(ROWS, classes=["leave", "greet"])


def test_classifier_one_class_only():
    with pytest.raises(DataError, match="only one class, 'greet'"):
        build([{"text": "a", "labels": ["greet"]}, {"text": "b", "labels": ["greet"]}])


def test_classifier_rejects_below_the_threshold():
    agent, teacher = build(ROWS, reject_class="unsure", threshold=0.9)
    assert answers(agent, "hello 1")[0]["text"] == "unsure"
    learn(agent, teacher)
    reply = answers(agent, "hello 1")[0]
    assert reply["text"] == "greet"
    assert reply["probability"] >= 0.9


@pytest.mark.parametrize(
    "options,what",
    [
        ({"threshold": 1.5, "reject_class": "x"}, "0.0 to 1.0"),
        ({"threshold": 0.5}, "reject_class"),
        ({"class_weights": "even"}, "balanced"),
        ({"classes": ["one"]}, "two"),
    ],
)
def test_classifier_settings_out_of_range(options, what):
    with pytest.raises(ValueError, match=what):
        build(ROWS, **options)


def test_classifier_balanced_weights_are_inverse_frequencies_with_mean_one():
    rows = [{"text": "a", "labels": ["x"]}] * 6 + [{"text": "b", "labels": ["y"]}] * 2
    agent, _ = build([dict(row) for row in rows], class_weights="balanced")
    assert agent.weights == [8 / (2 * 6), 8 / (2 * 2)]
    assert numpy.dot(agent.weights, [6, 2]) / 8 == 1.0


def test_classifier_weights_scale_the_gradient():
    plain, _ = build(ROWS)
    heavy, _ = build(ROWS, class_weights={"greet": 3.0})
    for agent in (plain, heavy):
        observed = agent.batch_observe([Message(text="hello", labels=["greet"], id="0")])
        agent.batch_act(observed)
    numpy.testing.assert_allclose(
        heavy.parameters.gradients, 3 * plain.parameters.gradients, rtol=1e-5, atol=1e-7
    )
    with pytest.raises(ConfigError, match="names no class: typo"):
        build(ROWS, class_weights={"typo": 2.0})


def test_classifier_gradient_that_is_not_finite_names_all_examples_since_the_update():
    agent, _ = build(ROWS)
    optimizer = registry.optimizers.get("SGD.v1")(0.1)
    for name in ("a/0", "b/0"):
        rows = [Message(text="hello", labels=["greet"], id=name)]
        agent.batch_act(agent.batch_observe(rows))
    agent.parameters.gradients[0] = numpy.nan
    before = agent.parameters.values.copy()
    with pytest.raises(TrainingError, match="gradient is not finite.*: a/0, b/0. Try"):
        agent.update(optimizer)
    assert agent.parameters.values.tobytes() == before.tobytes()


def test_classifier_takes_features():
    rng = numpy.random.default_rng(0)
    rows = []
    for _ in range(40):
        x = rng.normal(size=3).astype("f")
        rows.append({"features": x, "labels": ["up" if x[0] > 0 else "down"]})
    linear = registry.layers.get("Linear.v1")(nO=4)
    agent, teacher = build(rows, encoder=linear, tokenizer=False)
    learn(agent, teacher, epochs=40)
    right = 0
    for row in rows:
        reply = answers(agent, None, features=row["features"])[0]
        right += reply["text"] == row["labels"][0]
    assert right >= 38
    with pytest.raises(DataError, match="5 features, expected 3"):
        answers(agent, None, features=numpy.zeros(5, dtype="f"), id="9")
    with pytest.raises(DataError, match="the message has no features.*not text"):
        answers(agent, "hello")


def test_classifier_of_a_model_that_cannot_read_the_data_is_a_config_error():
    linear = registry.layers.get("Linear.v1")(nO=4)
    with pytest.raises(ConfigError, match=r"agent.model\] cannot be set up to read text \(as Rag"):
        build(ROWS, encoder=linear)
    rows = [{"features": numpy.ones(3, dtype="f"), "labels": [label]} for label in "ab"]
    with pytest.raises(ConfigError, match=r"cannot be set up to read features: \w+Error: "):
        build(rows, tokenizer=False)


def test_classifier_of_text_needs_a_tokenizer():
    with pytest.raises(ConfigError, match=r"no \[tokenizer\]"):
        build(ROWS, tokenizer=False)


def test_classifier_evaluation_loss_is_the_mean_of_minus_log_p():
    agent, teacher = build(ROWS)
    learn(agent, teacher, epochs=1)
    agent.reset_metrics()
    texts = ["hello 1", "pay 3"]
    answers(agent, *texts, eval_labels=["greet"])
    loss = agent.report()["loss"]
    logits = agent.model.predict(agent.contexts([[(PARTNER, text)] for text in texts]))
    P = numpy.exp(logits) / numpy.exp(logits).sum(axis=1, keepdims=True)
    assert float(loss.denominator) == 2
    assert loss.value() == pytest.approx(-numpy.log(P[:, agent.classes.index("greet")]).mean())


def test_classifier_learns_from_the_examples_that_have_labels():
    agent, train = build([*ROWS, {"text": "hm"}])
    assert agent.classes == ["bill", "greet", "leave"]
    learn(agent, train, epochs=1)
    for options in ({}, {"classes": ["greet", "leave"]}):
        with pytest.raises(DataError, match="no training example has a label"):
            build([{"text": "hm"}], **options)
