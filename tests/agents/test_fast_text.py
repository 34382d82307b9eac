"""The fastText-like classifier: what it learns and what it refuses."""

import numpy as np
import pytest
from thinc.api import Adam

from thincdialog.api import DataError

from . import colours
from .colours import answer, make, messages

pytest.importorskip("numba")
ANSWERS = {"red": "stop", "green": "go", "amber": "wait", "blue": "swim"}
EXAMPLES = colours.examples(ANSWERS)
SGD = "thincdialog.SparseSGD.v1"


def build(examples=EXAMPLES, agent="FastText", ngrams=2, **options):
    return colours.build(
        agent,
        lambda: make("models", "FastText", width=16),
        examples,
        lambda: make("tokenizers", "WordNgrams", n_rows=100, ngrams=ngrams),
        **options,
    )


def learn(agent, teacher, optimizer=None, epochs=60, size=5):
    colours.learn(agent, teacher, optimizer or make("optimizers", SGD, 0.5), epochs, size)


@pytest.mark.parametrize("options", [{}, {"negatives": 2}, {"class_weights": "balanced"}])
def test_fast_text_learns(options):
    agent, teacher = build(**options)
    learn(agent, teacher)
    assert {text: answer(agent, f"{text} here") for text in ANSWERS} == ANSWERS


def test_fast_text_learns_the_order_of_words():
    rows = [("a b", "first a"), ("b a", "first b")]
    examples = [{"text": text, "labels": [label]} for text, label in rows]
    agent, teacher = build(examples)
    learn(agent, teacher, epochs=200)
    assert [answer(agent, text) for text, _ in rows] == ["first a", "first b"]
    agent, teacher = build(examples, ngrams=1)
    learn(agent, teacher, epochs=200)
    assert answer(agent, "a b") == answer(agent, "b a")


def test_fast_text_one_example_is_a_step_of_the_plain_classifier():
    """The kernel's step on one example is plain SGD through the layers."""
    fast, _ = build(class_weights={"stop": 2.0})
    plain, _ = build(agent="Classifier", class_weights={"stop": 2.0}, max_context=0)
    assert np.array_equal(fast.weights, plain.weights)
    losses = [], []
    for agent, own in zip((fast, plain), losses):
        optimizer = make("optimizers", SGD, 0.3, grad_clip=0.0)
        for row in EXAMPLES[:6]:
            agent.batch_act(messages([row]))
            report = agent.update(optimizer)
            own.append(report.loss / report.weight)
    np.testing.assert_allclose(fast.weights, plain.weights, atol=1e-6)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_fast_text_model_can_be_trained_by_the_classifier():
    agent, teacher = build(agent="Classifier")
    learn(agent, teacher, Adam(0.05))
    assert {text: answer(agent, f"{text} there") for text in ANSWERS} == ANSWERS


def test_fast_text_reads_texts_without_a_word():
    agent, teacher = build([*EXAMPLES, {"text": "", "labels": ["nothing"]}])
    learn(agent, teacher)
    assert answer(agent, "") == "nothing"
    assert answer(agent, "green yonder") == "go"


def test_fast_text_classes_without_an_example_are_not_answered():
    agent, teacher = build(classes=[*ANSWERS.values(), "fly"], negatives=3)
    learn(agent, teacher)
    assert agent.classes[-1] == "fly" and agent.class_counts == [3, 3, 3, 3, 0]
    assert {text: answer(agent, f"{text} here") for text in ANSWERS} == ANSWERS
    with pytest.raises(DataError, match="example 1 has the label 'run', which is not among"):
        agent.batch_act(messages([EXAMPLES[0], {"text": "x", "labels": ["run"]}]))


def test_fast_text_options_and_models_it_does_not_know_are_refused():
    model = make("models", "LinearClassifier")
    with pytest.raises(ValueError, match="trains only @models"):
        make("agents", "FastText", model)
    for n in (-1, 2**63 - 1):
        with pytest.raises(ValueError, match=f"negatives = {n}, expected 1 to 1,000,000, or 0"):
            build(negatives=n)
    with pytest.raises(ValueError, match="or a goal on dev such as 'precision:0.95'"):
        build(threshold=5)
    with pytest.raises(ValueError, match="width = 0"):
        make("models", "FastText", width=0)
