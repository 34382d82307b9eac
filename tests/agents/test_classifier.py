"""The classifier: classes, weights, rejection, features."""

import pickle
from functools import partial

import numpy as np
import pytest
from thinc.api import (
    Linear,
    Relu,
    Softmax,
    Softmax_v2,
    add,
    chain,
    concatenate,
    fix_random_seed,
    softmax_activation,
    zero_init,
)

from tests.ops.array_backends import EACH_OPS
from thincdialog.api import PARTNER, ConfigError, DataError, Message, TrainingError

from . import colours
from .colours import make, teacher_of

ROWS = [
    {"text": f"{word} {n}", "labels": [label]}
    for n in range(4)
    for word, label in (("hello", "greet"), ("bye", "leave"), ("pay", "bill"))
]


def words():
    return make("tokenizers", "Words")


def build(rows, *, encoder=None, tokenizer=words, **options):
    def make_model():
        return make("models", "Classifier", encoder or make("models", "BagEncoder", width=16))

    return colours.build("Classifier", make_model, rows, tokenizer, **options)


def learn(agent, teacher, epochs=20):
    colours.learn(agent, teacher, make("optimizers", "Adam.v1", 0.02), epochs)


def answers(agent, *texts, **fields):
    return list(agent.batch_act([Message(text=text, **fields) for text in texts]))


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


@pytest.mark.parametrize(
    "rows, options, what",
    [
        (ROWS, {"classes": ["leave", "greet"]}, "'bill', which is not among the classes"),
        ([{"text": text, "labels": ["greet"]} for text in "ab"], {}, "only one class, 'greet'"),
        ([{"text": "hm"}], {}, "no training example has a label"),
        ([{"text": "hm"}], {"classes": ["greet", "leave"]}, "no training example has a label"),
        (
            [{"text": "hm", "labels": ["greet", "leave"]}, *ROWS],
            {},
            "example 0/0 has 2 labels .'greet', 'leave'.: a classifier .*MultiLabel.v1",
        ),
    ],
)
def test_classifier_data_that_does_not_fit(rows, options, what):
    with pytest.raises(DataError, match=what):
        build(rows, **options)


def test_classifier_rejects_below_the_threshold():
    agent, teacher = build(ROWS, reject_class="unsure", threshold=0.9)
    assert answers(agent, "hello 1")[0]["text"] == "unsure"
    learn(agent, teacher)
    reply = answers(agent, "hello 1")[0]
    assert reply["text"] == "greet" and reply["probability"] >= 0.9


def test_classifier_divides_its_logits_by_the_temperature():
    agent, teacher = build(ROWS, threshold=0.6)
    learn(agent, teacher, epochs=2)
    (before,) = answers(agent, "hello 1")
    agent.temperature = 0.1
    (sure,) = answers(agent, "hello 1")
    powers = np.array(before["probabilities"], dtype="f8") ** 10
    assert sure["probabilities"] == pytest.approx(powers / powers.sum(), rel=1e-4)
    assert sure["text_candidates"] == before["text_candidates"]
    assert (before["text"], sure["text"]) == ("unknown", "greet")


def test_classifier_chooses_among_candidates_that_are_classes():
    agent, teacher = build(ROWS)
    learn(agent, teacher)
    plain, *alike = answers(agent, *["hello 2"] * 4)
    P = dict(zip(plain["classes"], plain["probabilities"]))
    expected = {name: P[name] / (P["leave"] + P["bill"]) for name in ("leave", "bill")}
    given = [["bill", "leave", "no class"], ["no class"], list(agent.classes), None]
    messages = [Message(text="hello 2", label_candidates=texts) for texts in given]
    first, *others = agent.batch_act(messages)
    assert first["text"] == first["text_candidates"][0] == max(expected, key=expected.get)
    found = dict(zip(first["text_candidates"], first["candidate_probabilities"]))
    assert found == pytest.approx(expected, rel=1e-5)
    assert dict(zip(first["classes"], first["probabilities"])) == {**found, "greet": 0.0}
    assert others == alike


@pytest.mark.parametrize(
    "options, what",
    [
        ({"threshold": 1.5, "reject_class": "x"}, "0.0 to 1.0"),
        ({"threshold": "precision"}, "precision:0.95"),
        ({"threshold": "recall:1.5"}, "recall:0.6"),
        ({"threshold": "f1:0.5"}, "precision:0.95"),
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
    assert agent.loss_weights == [8 / (2 * 6), 8 / (2 * 2)]
    assert np.dot(agent.loss_weights, [6, 2]) / 8 == 1.0


def test_classifier_weights_scale_the_gradient():
    plain, _ = build(ROWS)
    heavy, _ = build(ROWS, class_weights={"greet": 3.0})
    for agent in (plain, heavy):
        agent.batch_act([Message(text="hello", labels=["greet"], id="0")])
    np.testing.assert_allclose(
        heavy.parameters.gradients, 3 * plain.parameters.gradients, rtol=1e-5, atol=1e-7
    )
    with pytest.raises(ConfigError, match="has keys that are not classes: typo"):
        build(ROWS, class_weights={"typo": 2.0})


def test_classifier_gradient_that_is_not_finite_names_all_examples_since_the_update():
    agent, _ = build(ROWS)
    for name in ("a/0", "b/0"):
        agent.batch_act([Message(text="hello", labels=["greet"], id=name)])
    agent.parameters.gradients[0] = np.nan
    before = agent.weights.copy()
    with pytest.raises(TrainingError, match="gradient is not finite.*: a/0, b/0. Try"):
        agent.update(make("optimizers", "SGD.v1", 0.1))
    assert agent.weights.tobytes() == before.tobytes()


def test_classifier_takes_features():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 3)).astype("f")
    rows = [{"features": x, "labels": ["up" if x[0] > 0 else "down"]} for x in points]
    linear = make("layers", "Linear.v1", nO=4)
    agent, teacher = build(rows, encoder=linear, tokenizer=lambda: None)
    learn(agent, teacher, epochs=40)
    found = [answers(agent, None, features=row["features"])[0]["text"] for row in rows]
    assert sum(text == row["labels"][0] for text, row in zip(found, rows)) >= 38
    with pytest.raises(DataError, match="5 features, expected 3"):
        answers(agent, None, features=np.zeros(5, dtype="f"), id="9")
    with pytest.raises(DataError, match="the message has no features.*not text"):
        answers(agent, "hello")


@pytest.mark.parametrize(
    "first, second, what",
    [
        (
            {"features": np.ones((2, 3))},
            {"text": ""},
            "example 0/0 has features of several dimensions",
        ),
        (
            {"features": [[1.0, 2.0]]},
            {"text": ""},
            "example 0/0 has features of several dimensions",
        ),
        (
            {"features": np.ones(3), "text": "hi"},
            {"text": ""},
            "0/0 has both features and a text .'hi'.: a",
        ),
        ({"features": np.ones(3)}, {"text": "hi"}, "example 1/0 has no features, expected 3: this"),
        ({"features": np.ones(3)}, {"features": np.ones(4)}, "1/0 has 4 features, expected 3"),
        ({"text": "hi"}, {"features": [1.0]}, "1/0 has 1 features, but the first has none"),
    ],
)
def test_classifier_reads_all_examples_alike(first, second, what):
    with pytest.raises(DataError, match=what) as caught:
        build([{**first, "labels": ["a"]}, {**second, "labels": ["b"]}])
    assert "\n" not in str(caught.value)


@EACH_OPS
def test_classifier_that_ends_in_a_softmax_trains_as_one_of_logits(ops):
    """It answers the same, too: the outputs of Thinc's Softmax are probabilities."""
    rows = [
        {"features": np.eye(4, dtype="f")[[row, 3]].sum(axis=0), "labels": [label]}
        for row, label in enumerate("abc")
    ]
    found = []
    for last in (Softmax, partial(Linear, init_W=zero_init)):
        fix_random_seed(0)
        agent = make("agents", "Classifier", chain(Relu(8), last()))
        agent.initialize(teacher_of(rows))
        examples, optimizer = [Message(row) for row in rows], make("optimizers", "SGD.v1", 0.5)
        reports = []
        for _ in range(20):
            agent.batch_act(examples)
            reports.append(float(agent.update(optimizer).loss))
        replies = agent.batch_act([Message(row, labels=None) for row in rows])
        P = [reply["probabilities"] for reply in replies]
        assert [reply["text"] for reply in replies] == ["a", "b", "c"]
        found.append((ops.to_numpy(agent.weights), reports, P))
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_classifier_refuses_other_probabilities_where_logits_belong():
    for last in (softmax_activation(), Softmax_v2(normalize_outputs=False)):
        with pytest.raises(ValueError, match="the model ends in a softmax, but logits are expect"):
            make("agents", "Classifier", chain(Relu(4), last))
    make("agents", "Classifier", chain(Softmax(), Linear()))


def vote(*members):
    return make("models", "Committee", list(members))


@pytest.mark.parametrize("join", [add, concatenate, vote, partial(make, "layers", "Parts")])
@pytest.mark.parametrize("last", [Softmax, softmax_activation])
def test_classifier_refuses_probabilities_of_any_member(join, last):
    for place in range(3):
        members = [Linear(4) if at != place else chain(Linear(4), last()) for at in range(3)]
        with pytest.raises(ValueError, match="the model ends in a softmax"):
            make("agents", "Classifier", chain(Relu(4), join(*members)))
        make("agents", "Classifier", chain(join(*members), Linear()))
    make("agents", "Classifier", join(chain(Softmax(), Linear()), Linear()))


def test_classifier_of_a_model_that_cannot_read_the_data_is_a_config_error():
    linear = make("layers", "Linear.v1", nO=4)
    with pytest.raises(ConfigError, match=r"agent.model\] cannot be set up to read text \(as Rag"):
        build(ROWS, encoder=linear)
    rows = [{"features": np.ones(3, dtype="f"), "labels": [label]} for label in "ab"]
    with pytest.raises(ConfigError, match=r"cannot be set up to read features: \w+Error: "):
        build(rows, tokenizer=lambda: None)
    with pytest.raises(ConfigError, match=r"no \[tokenizer\]"):
        build(ROWS, tokenizer=lambda: None)


def test_classifier_evaluation_loss_is_the_mean_of_minus_log_p():
    agent, teacher = build(ROWS)
    learn(agent, teacher, epochs=1)
    agent.reset_metrics()
    texts = ["hello 1", "pay 3"]
    answers(agent, *texts, eval_labels=["greet"])
    loss = agent.report()["loss"]
    logits = agent.model.predict(agent.contexts([[(PARTNER, text)] for text in texts]))
    P = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert float(loss.denominator) == 2
    assert loss.value() == pytest.approx(-np.log(P[:, agent.classes.index("greet")]).mean())


def test_classifier_learns_from_the_examples_that_have_labels():
    agent, train = build([*ROWS, {"text": "hm"}])
    assert agent.classes == ["bill", "greet", "leave"]
    learn(agent, train, epochs=1)


def test_classifier_gives_a_memory_network_the_names_of_its_classes(tmp_path):
    def network():
        return make("models", "MemoryNetwork", make("models", "MemoryReader", width=8, noise=0.1))

    agent, teacher = colours.build("Classifier", network, ROWS, words)
    learn(agent, teacher)
    replies = answers(agent, "hello 2", "bye 2", "pay 9")
    assert [reply["text"] for reply in replies] == ["greet", "leave", "bill"]
    agent.to_disk(tmp_path)
    loaded = make("agents", "Classifier", network())
    loaded.from_disk(tmp_path, tokenizer=words())
    for other in (loaded, agent.replica(), pickle.loads(pickle.dumps(agent))):
        P = [reply["probabilities"] for reply in answers(other, "hello 2", "bye 2", "pay 9")]
        np.testing.assert_allclose(P, [each["probabilities"] for each in replies], rtol=1e-4)
