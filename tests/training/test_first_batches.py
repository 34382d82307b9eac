"""A ranker that would have nothing to tell right replies from."""

import json

import pytest

from tests.training.examples import quietly_train
from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import IterableTeacher, TrainingError, registry

CONFIG = """
[tasks.pairs]
@teachers = "tests.first_batches.Pairs.v1"
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
# No two examples share a batch.
SMALL_BUDGET = BATCHES.format("Words", "budget = 2")
PARTNER = '@worlds = "thincdialog.PartnerWorld.v1"'


@registry.teachers("tests.first_batches.Pairs.v1")
def pairs(replies: list, streaming: bool = False):
    rows = [(f"text {number}", reply) for number, reply in enumerate(replies)]
    return IterableTeacher({"train": lambda: rows, "dev": rows}, streaming=streaming)


@registry.agents("tests.first_batches.Looking.v1")
class Looking(RankerAgent):
    """Keeps what it was shown, and wants to see three batches."""

    seen = []
    has_looked = property(lambda self: len(self.seen) >= 3)

    def look(self, batch):
        self.seen.append(("look", batch[0]["text"]))
        return True

    def learn(self, batch):
        self.seen.append(("learn", batch[0]["text"]))
        return super().learn(batch)


def config(replies, world=OF_ONE, candidates="batch", streaming=False):
    parts = {"replies": json.dumps(list(replies)), "streaming": json.dumps(streaming)}
    return CONFIG.format(world=world, candidates=candidates, **parts)


@pytest.mark.parametrize(
    "replies, world, changes, which",
    [
        ("abc", OF_ONE, {}, "all 6"),
        ("abc", SMALL_BUDGET, {}, "all 6"),
        ("abc", PARTNER, {}, "all 6"),
        ("abc", OF_ONE, {"max_steps": 1, "accumulate_gradient": 2}, "all 2"),
        ("abc", OF_ONE, {"min_steps": 8}, "all 9"),
        ("ab" * 200, OF_ONE, {}, "the first 100"),
    ],
)
def test_first_batches_of_one_are_refused_before_a_step(
    replies, world, changes, which, monkeypatch
):
    monkeypatch.setattr(RankerAgent, "update", None)
    changes = {f"training.{name}": value for name, value in changes.items()}
    said = f'In {which} batches, right replies are .* Set candidates = "fixed" or "inline"'
    with pytest.raises(TrainingError, match=said):
        quietly_train(config(replies, world), **changes)


def test_first_batches_of_a_stream_are_refused_when_all_have_come(tmp_path):
    said = "In all 6 batches, right replies are their only candidates"
    with pytest.raises(TrainingError, match=said):
        quietly_train(config("abc", streaming=True), output=tmp_path / "run")
    assert not (tmp_path / "run" / "scores.json").exists()


@pytest.mark.parametrize(
    "changed",
    [
        config("ab", BATCHES.format("Fixed", "size = 2"), streaming=True),
        # Both replies meet in some batch.
        config("aaab", BATCHES.format("Fixed", "size = 3")),
        config("abc", candidates="fixed"),
    ],
)
def test_first_batches_with_others_to_tell_from_train(changed):
    result, _ = quietly_train(changed)
    assert result.stopped_because == "max_epochs = 2 reached"


ROWS = """
[tasks.pairs]
@teachers = "thincdialog.ParlAIText.v1"
train = "{path}"
dev = "{path}"

[tokenizer]"""


def test_first_batches_are_looked_at_without_what_is_ignored(tmp_path):
    """An example whose label is no candidate has many, and is not learnt."""
    rows = ["text:a\tlabels:x\tlabel_candidates:x\tepisode_done:True\n",
            "text:b\tlabels:y\tlabel_candidates:u|v|w\tepisode_done:True\n"]  # fmt: skip
    path = tmp_path / "rows.txt"
    path.write_text("".join(rows * 3))
    changed = ROWS.format(path=path) + config("a", candidates="inline").partition("[tokenizer]")[2]
    with pytest.raises(TrainingError, match="In all 6 batches, right replies are their only"):
        quietly_train(changed, agent__ignore_bad_candidates=True)


def test_first_batches_are_shown_to_an_agent_of_a_users_till_it_has_looked(tmp_path, monkeypatch):
    monkeypatch.setattr(Looking, "seen", [])
    changed = config("abcdef").replace("thincdialog.Ranker.v1", "tests.first_batches.Looking.v1")
    quietly_train(changed, training__max_epochs=1.0)
    looked, learnt = Looking.seen[:3], Looking.seen[3:]
    assert [what for what, _ in Looking.seen] == ["look"] * 3 + ["learn"] * 6
    assert [text for _, text in looked] == [text for _, text in learnt[:3]]
