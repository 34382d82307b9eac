"""Right replies that are told from nothing."""

import pytest

from tests.training.examples import RANKER, quietly_train
from thincdialog.agents.lone_replies import LoneReplies
from thincdialog.api import DataError, TrainingError

from . import colours
from .test_ranker import ANSWERS, EXAMPLES, build

IN_BATCH = RANKER.replace('"inline"', '"batch"')


def test_lone_replies_are_an_error_only_from_the_first_batch_on():
    lone = LoneReplies()
    for n_candidates in (1, 2, *[1] * 200):
        lone.see(n_candidates)
    lone = LoneReplies()
    for _ in range(99):
        lone.see(1)
    with pytest.raises(TrainingError, match="In the first 100 batches, right replies are their"):
        lone.see(1)


def test_lone_replies_batches_of_one_are_an_error():
    changes = {"tasks__coffee__n_train": 40, "world__batcher__size": 1}
    said = 'the first 100 batches, .* Set candidates = "fixed" or "inline"'
    agent, teacher = build()
    with pytest.raises(TrainingError, match=said):
        colours.learn(agent, teacher, colours.make("optimizers", "Adam.v1", 0.01), size=1)
    result, _ = quietly_train(RANKER, training__max_epochs=1.0, **changes)
    assert result.scores["dev"]["examples"] > 0


def test_lone_replies_last_batch_of_one_is_no_error():
    # Batches of 11 and of one, 30 times.
    agent, teacher = build()
    colours.learn(agent, teacher, colours.make("optimizers", "Adam.v1", 0.01), size=11)
    assert len(EXAMPLES) % 11 == 1 and agent.lone_replies.is_over


def test_lone_replies_lists_of_one_teach_nothing():
    def learn(rows):
        agent, teacher = build(rows, candidates="inline")
        colours.learn(agent, teacher, colours.make("optimizers", "Adam.v1", 0.01), size=1)

    rows = [{**row, "label_candidates": row["labels"]} for row in EXAMPLES]
    with pytest.raises(TrainingError, match="right replies are their only candidates"):
        learn(rows)
    rows[0] = {**rows[0], "label_candidates": list(ANSWERS.values())}
    learn(rows)


def test_lone_replies_one_label_in_all_data_is_found_before_training():
    rows = [{"text": text, "labels": ["yes"]} for text in "abc"]
    with pytest.raises(DataError, match="has one reply only, 'yes': .*candidates = \"fixed\""):
        build(rows)
    build([*rows, {"text": "d", "labels": ["no"]}])
