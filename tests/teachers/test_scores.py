"""Scores of replies in training."""

import numpy as np
import pytest

from tests.examples.talk import make_teacher, mix
from tests.training.examples import RANKER
from thincdialog.api import Experiment
from thincdialog.batchers import Fixed
from thincdialog.messages import Message, MessageBatch
from thincdialog.metrics import report_values


def values(teacher):
    return {name: pytest.approx(value) for name, value in report_values(teacher.report()).items()}


def test_scores_of_training_are_accuracy_and_f1_of_replies_with_a_text():
    by_turns, by_batches = make_teacher([1] * 4), make_teacher([1] * 4)
    by_batches.set_batches(Fixed(4))
    by_batches.batch_act()
    texts = ["label 9", None, "Label", "apple"]
    for text in texts:
        by_turns.act()
        by_turns.observe(Message() if text is None else Message(text=text))
    by_batches.batch_observe(MessageBatch({"text": texts}, 4))
    # "label 0" shares one of two words with "label 9", and one with the single word "Label".
    expected = {"examples": 4, "accuracy": 0, "precision": 1.5 / 3, "recall": 1 / 3}
    expected["f1"] = (0.5 + 2 / 3) / 3
    assert values(by_turns) == expected and values(by_batches) == expected
    by_batches.reset_metrics()
    # Without any text, there is nothing to average.
    assert values(by_batches) == {"examples": 0}


def test_scores_of_training_compare_texts_exactly():
    found = {}
    for training in (True, False):
        teacher = make_teacher([1], training=training)
        teacher.act()
        teacher.observe(Message(text="Label 0."))
        found[training] = values(teacher)["accuracy"]
    assert found == {True: 0, False: 1}


def test_scores_on_a_device_are_read_once_when_requested():
    teacher, asked = mix([[1] * 3, [1] * 5]), []
    teacher.set_batches(Fixed(8))
    rows = list(teacher.batch_act())

    def texts():
        asked.append(True)
        return [row["labels"][0] if row["id"][0] == "a" else None for row in rows]

    columns = {"text": texts, "loss": lambda: np.arange(8.0).tolist()}
    teacher.batch_observe(MessageBatch(columns, 8, is_on_device=True))
    assert not asked
    found = values(teacher)
    assert len(asked) == 1
    assert found["a/f1"] == found["macro/f1"] == found["f1"] == 1 and "b/f1" not in found
    assert "macro/loss" in found and "loss" not in found and found["b/examples"] == 5


@pytest.mark.parametrize("with_metrics", [True, False])
def test_scores_of_an_agent_that_trains(with_metrics):
    experiment = Experiment.from_config(RANKER)
    train, agent = experiment.training_split(with_metrics=with_metrics), experiment.agent
    agent.initialize(train, tokenizer=experiment.tokenizer, seed=1)
    world = experiment.make_world(train, agent)
    world.start_epoch(0, 1)
    while not world.epoch_done():
        world.parley()
        agent.update(experiment.optimizer)
    report = world.report()
    assert ("f1" in report) == with_metrics
    assert report["accuracy"].value() == agent.report()["accuracy"].value()
    if with_metrics:
        assert report["accuracy"].value() < report["f1"].value() < 1
