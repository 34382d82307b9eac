"""Right replies without any others to be ranked against."""

import json

import pytest

from tests.training.examples import RANKER, quietly_train
from thincdialog.agents.lone_replies import LoneReplies
from thincdialog.api import DataError, IterableTeacher, TrainingError, registry

from . import colours
from .test_ranker import ANSWERS, EXAMPLES, build


def test_lone_replies_are_an_error_only_from_the_first_batch_on():
    lone = LoneReplies()
    for n_candidates in (1, 2, *[1] * 200):
        lone.see(n_candidates)
    lone = LoneReplies()
    for _ in range(99):
        lone.see(1)
    with pytest.raises(TrainingError, match="In the first 100 batches, right replies have no"):
        lone.see(1)


def test_lone_replies_of_small_data_are_an_error_after_two_epochs():
    lone = LoneReplies(3)
    for _ in range(5):
        lone.see(1)
    with pytest.raises(TrainingError, match="In the first 6 batches, right replies have no"):
        lone.see(1)
    lone = LoneReplies(1000)
    for _ in range(99):
        lone.see(1)
    with pytest.raises(TrainingError, match="In the first 100 batches"):
        lone.see(1)


def test_lone_replies_batches_of_one_are_an_error():
    changes = {"tasks__coffee__n_train": 40, "world__batcher__size": 1}
    # After two epochs of small data.
    said = f'the first {2 * len(EXAMPLES)} batches, .* Set candidates = "fixed" or "inline"'
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
    with pytest.raises(TrainingError, match="right replies have no other candidates"):
        learn(rows)
    rows[0] = {**rows[0], "label_candidates": list(ANSWERS.values())}
    learn(rows)


def test_lone_replies_one_label_in_all_data_is_found_before_training():
    rows = [{"text": text, "labels": ["yes"]} for text in "abc"]
    with pytest.raises(DataError, match="has only one reply, 'yes': .*candidates = \"fixed\""):
        build(rows)
    build([*rows, {"text": "d", "labels": ["no"]}])


CONFIG = """
[tasks.pairs]
@teachers = "tests.lone_replies.Pairs.v1"
replies = {replies}
streaming = {streaming}

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.Ranker.v1"
candidates = "{candidates}"

[agent.model]
@models = "thincdialog.BiEncoder.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = 4

[world]
{world}

[training]
max_epochs = 2
score = "hits@1"
"""
BATCHES = """@worlds = "thincdialog.BatchWorld.v1"

[world.batcher]
@batchers = "thincdialog.{}.v1"
{}
"""
OF_ONE = BATCHES.format("Fixed", "size = 1")
# No two examples share a batch, but each comes with labels of other examples.
SMALL_BUDGET = BATCHES.format("Words", "budget = 2")
PARTNER = '@worlds = "thincdialog.PartnerWorld.v1"'


@registry.teachers("tests.lone_replies.Pairs.v1")
def pairs(replies: list, streaming: bool = False):
    rows = [(f"text {number}", reply) for number, reply in enumerate(replies)]
    return IterableTeacher({"train": lambda: rows, "dev": rows}, streaming=streaming)


def config(replies, world=OF_ONE, candidates="batch", streaming=False):
    parts = {"replies": json.dumps(list(replies)), "streaming": json.dumps(streaming)}
    return CONFIG.format(world=world, candidates=candidates, **parts)


@pytest.mark.parametrize("world, streaming", [(OF_ONE, 0), (PARTNER, 1)])
def test_lone_replies_end_training_and_leave_no_scores(world, streaming, tmp_path):
    said = 'In the first 100 batches, right replies have .* Set candidates = "fixed" or "inline"'
    with pytest.raises(TrainingError, match=said):
        quietly_train(config("ab" * 60, world, streaming=bool(streaming)), tmp_path / "run")
    assert not (tmp_path / "run" / "scores.json").exists()


@pytest.mark.parametrize(
    "changed",
    [
        config("ab", BATCHES.format("Fixed", "size = 2"), streaming=True),
        # Both replies occur together in some batch.
        config("aaab", BATCHES.format("Fixed", "size = 3")),
        config("abc", candidates="fixed"),
        config("ab" * 60, SMALL_BUDGET),
    ],
)
def test_lone_replies_some_batches_with_other_candidates_are_enough(changed):
    result, _ = quietly_train(changed)
    assert result.stopped_because == "max_epochs = 2 reached"


ROWS = """
[tasks.pairs]
@teachers = "thincdialog.ParlAIText.v1"
train = "{path}"
dev = "{path}"

[tokenizer]"""


def test_lone_replies_of_examples_that_are_ignored_do_not_count(tmp_path):
    """An example whose label is not among its candidates has many of them, and is ignored."""
    rows = ["text:a\tlabels:x\tlabel_candidates:x\tepisode_done:True\n",
            "text:b\tlabels:y\tlabel_candidates:u|v|w\tepisode_done:True\n"]  # fmt: skip
    path = tmp_path / "rows.txt"
    path.write_text("".join(rows * 60))
    changed = ROWS.format(path=path) + config("a", candidates="inline").partition("[tokenizer]")[2]
    with pytest.raises(
        TrainingError, match="In the first 100 batches, right replies have no other"
    ):
        quietly_train(changed, agent__ignore_bad_candidates=True)
