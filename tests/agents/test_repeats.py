"""Candidates that repeat an earlier turn: which ones they are, and how they are ranked."""

import json

import pytest

from thincdialog.agents.repeats import shall_block
from thincdialog.batchers import Fixed
from thincdialog.evaluation.evaluate_agent import evaluate_agent
from thincdialog.files.json_file import read_json
from thincdialog.messages import PARTNER, SELF, Message
from thincdialog.metrics.ranking import Ranking
from thincdialog.mutators.flatten import Flatten
from thincdialog.registry import registry
from thincdialog.teachers.iterable import IterableTeacher
from thincdialog.worlds import BatchWorld, PartnerWorld

from . import colours
from .colours import make, reply

ANSWERS = {"red": "stop", "green": "go", "amber": "wait", "blue": "swim"}


def talk(*labels):
    """Make a conversation: the message before each label, and its words."""
    return [{"text": f"{label}?", "labels": [label]} for label in labels]


def test_repeats_are_blocked_if_labels_rarely_repeat():
    """The limit is one label in fifty."""
    new = [talk(f"a{n}", f"b{n}") for n in range(48)]
    for last, expected in ((talk("x", "z"), True), (talk("x", "x"), False)):
        rows = [*new, talk("y", "y"), last]
        teacher = IterableTeacher({"train": rows}).for_split("train", training=True)
        assert shall_block(None, teacher) is expected
        assert shall_block(True, teacher) is True and shall_block(False, teacher) is False


def build(kind, **options):
    """Build a ranker that can do no better than echo, or a retrieval agent."""
    rows = colours.examples(ANSWERS)
    if kind == "Retrieval":
        agent = registry.agents.get("thincdialog.Retrieval.v1")(**options)
        agent.initialize(colours.teacher_of(rows))
        return agent
    identity = registry.initializers.get("thincdialog.identity_init.v1")()
    encoder = make("models", "BagEncoder", width=16, depth=0, dropout=0.0, init_W=identity)
    return colours.build("Ranker", lambda: make("models", "BiEncoder", encoder), rows, **options)[0]


KINDS = pytest.mark.parametrize("kind", ["Ranker", "Retrieval"])
CANDIDATES = ["red here", "here", "amber", "stop", "wait there", "red"]


@KINDS
@pytest.mark.parametrize(
    "message, repeats",
    [
        ({"text": "red here"}, {"red here"}),
        ({"text": "amber\nred here"}, {"amber", "red here"}),
        ({"text": "red", "context": [(PARTNER, "stop"), (SELF, "here")]}, {"red", "stop", "here"}),
        ({"text": "red", "eval_labels": ["red"]}, {"red"}),
        ({"text": "Red"}, set()),
    ],
)
def test_repeats_of_the_message_and_of_earlier_turns_are_not_answered_at_the_top(
    kind, message, repeats
):
    """That holds for a right answer, too: in a chat, the agent could not know that it is right."""
    plain, blocking = build(kind, block_repeats=False), build(kind, block_repeats=True)
    message = Message({**message, "label_candidates": CANDIDATES})
    ranked = plain.batch_act([message])[0]["text_candidates"]
    found = blocking.batch_act([message])[0]
    assert found["text_candidates"] == sorted(ranked, key=lambda text: text in repeats)
    assert found["text"] == found["text_candidates"][0] not in repeats
    only = {**message, "label_candidates": sorted(repeats)}
    if repeats:  # There is no other candidate.
        assert blocking.batch_act([Message(only)])[0]["text"] in repeats


@KINDS
def test_repeats_of_the_whole_conversation_count_in_a_chat(kind):
    """Turns count even if the agent no longer reads them, and so do its own."""
    talker = build(kind, block_repeats=True, history_size=1).clone()
    said = []
    for text in ("red here", "amber", "green here", "blue"):
        talker.observe(Message(text=text, label_candidates=CANDIDATES))
        found = talker.act()
        said.append(text)
        assert found["text"] not in said
        talker.self_observe(found)
        said.append(found["text"])


@KINDS
@pytest.mark.parametrize("blocks, history_size", [(False, -1), (False, 1), (True, 1), (None, 1)])
def test_repeats_are_the_same_with_and_without_a_label(kind, blocks, history_size):
    """So `predict` gives the same answers as an evaluation."""
    agent = build(kind, block_repeats=blocks, history_size=history_size)
    context = [(PARTNER, "stop"), (SELF, "red here"), (PARTNER, "amber"), (SELF, "here")]
    row = {"text": "red", "context": context, "label_candidates": CANDIDATES}
    rows = [Message(row), Message(row, eval_labels=["red"]), Message(row, eval_labels=["stop"])]
    found = [reply["text_candidates"] for reply in agent.batch_act(rows)]
    assert found == found[:1] * 3
    said = {"red", *(text for _, text in context)}
    assert agent.blocks_repeats is (blocks is not False)
    assert (set(found[0][-5:]) == said) is agent.blocks_repeats


@KINDS
def test_repeats_that_are_not_blocked_come_in_a_chat(kind):
    talker = build(kind, block_repeats=False).clone()
    for _ in range(2):
        talker.observe(Message(text="red here", label_candidates=CANDIDATES))
        found = talker.act()
        talker.self_observe(found)
        assert found["text"] == "red here"


@KINDS
def test_repeats_are_the_same_in_a_conversation_and_flattened(kind):
    rows = (("red", "amber"), ("here", "amber"), ("stop", "red"), ("no", "wait there"))
    talk = [{"text": x, "labels": [y], "label_candidates": CANDIDATES} for x, y in rows]
    talks = [talk, talk[1:]]
    agent, found = build(kind, block_repeats=True, history_size=2), []
    for mutators in ([], [Flatten()]):
        for make_world in (PartnerWorld, lambda t, a: BatchWorld(t, a, Fixed(3))):
            teacher = IterableTeacher({"dev": talks}, mutators=mutators).for_split("dev")
            teacher.set_metrics([Ranking()])
            found.append(evaluate_agent(agent, teacher, make_world))
    kept = [{name: one[name] for name in ("hits@1", "mrr", "examples")} for one in found]
    assert kept == kept[:1] * 4 and kept[0]["examples"] == 7


def test_repeats_that_are_right_stay_in_the_ranking_and_their_loss_is_the_models():
    row = Message(text="red", eval_labels=["red"], label_candidates=CANDIDATES)
    losses = []
    for blocks in (False, True):
        agent = build("Ranker", block_repeats=blocks)
        agent.reset_metrics()
        found = agent.batch_act([row])[0]
        losses.append(agent.report()["loss"].value())
        assert found["text_candidates"].index("red") == (5 if blocks else 0)
        scored = dict(zip(found["text_candidates"], found["candidate_probabilities"]))
        assert (scored["red"] == 0) == blocks and sum(scored.values()) == pytest.approx(1)
    assert losses[0] == losses[1]


def test_repeats_among_training_replies_are_not_retrieved():
    pairs = [("red car", "red car"), ("red car there", "fast"), ("blue", "sea")]
    for blocks, expected in ((False, "red car"), (True, "fast")):
        agent = registry.agents.get("thincdialog.Retrieval.v1")(block_repeats=blocks)
        agent.initialize(colours.teacher_of([{"text": t, "labels": [y]} for t, y in pairs]))
        assert reply(agent, "red car")["text"] == expected
        # The text has nothing in common with any context: the first reply that is no repeat is
        # chosen.
        unknown = [(SELF, "red car")] if blocks else []
        assert reply(agent, "xyz", context=unknown)["text"] == expected
        said = [(SELF, text) for text in ("red car", "fast", "sea")]
        assert reply(agent, "red car", context=said)["text"] == "red car"


@KINDS
def test_repeats_of_saved_models_are_blocked_as_before(kind, tmp_path):
    agent = build(kind)
    assert agent.blocks_repeats
    agent.to_disk(tmp_path)

    def loaded(**options):
        other = build(kind, **options)
        words = None if kind == "Retrieval" else make("tokenizers", "Words")
        other.from_disk(tmp_path, tokenizer=words)
        return other.blocks_repeats

    assert loaded() and loaded(block_repeats=True) and not loaded(block_repeats=False)
    # The model was saved before the setting existed.
    state = read_json(tmp_path / "agent.json")
    del state["blocks_repeats"]
    (tmp_path / "agent.json").write_text(json.dumps(state))
    assert not loaded() and loaded(block_repeats=True)
