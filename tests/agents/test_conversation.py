import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.agents.conversation import ConversationAgent
from thincdialog.errors import ProtocolError
from thincdialog.examples import Batch
from thincdialog.messages import PARTNER, SELF, SILENCE, Message

TURNS = st.lists(st.tuples(st.sampled_from([PARTNER, SELF]), st.text(max_size=3)), max_size=6)
SIZES = st.sampled_from([-1, 1, 2, 3, 5])


class Parrot(ConversationAgent):
    def batch_act(self, observations):
        return [Message(text=f"{len(each['turns'])} turns") for each in observations]


def exchange(agent, text, **fields):
    observation = agent.observe(Message(text=text, agent="teacher", **fields))
    reply = agent.batch_act([observation])[0]
    agent.self_observe(reply)
    return observation


def test_conversation_keeps_the_last_turns():
    agent = Parrot(history_size=2)
    first = exchange(agent, "a", labels=["b"])["turns"]
    assert exchange(agent, "c")["turns"] == [(SELF, "b"), (PARTNER, "c")]
    assert first == [(PARTNER, "a")]


@pytest.mark.parametrize("size", [0, -2])
def test_conversation_refuses_an_invalid_history_size(size):
    with pytest.raises(ValueError, match=f"history_size = {size}"):
        ConversationAgent(history_size=size)


def test_agent_use_reply_must_be_known():
    with pytest.raises(ValueError, match="'both', expected one of label, model, none"):
        ConversationAgent(use_reply="both")


@pytest.mark.parametrize(
    "use_reply, first, second, expected",
    [
        ("label", {"labels": ["yes", "no"]}, {"eval_labels": ["maybe"]}, [(SELF, "yes")]),
        ("model", {"labels": ["yes", "no"]}, {"eval_labels": ["maybe"]}, [(SELF, "1 turns")]),
        ("none", {"labels": ["yes", "no"]}, {"eval_labels": ["maybe"]}, []),
        ("label", {}, {}, [(SELF, "1 turns")]),  # Its own reply, if there is no label.
        ("label", {"episode_done": True}, {}, None),
        ("label", {}, {"context": [(PARTNER, "x"), (SELF, "y")]}, [(PARTNER, "x"), (SELF, "y")]),
    ],
)
def test_agent_history_is_what_was_said_in_the_episode(use_reply, first, second, expected):
    agent = Parrot(use_reply=use_reply)
    exchange(agent, "one", **first)
    before = [] if "episode_done" in first or "context" in second else [(PARTNER, "one")]
    seen = exchange(agent, "two", **second)
    assert seen["turns"] == [*before, *(expected or []), (PARTNER, "two")]
    agent.reset()
    assert exchange(agent, "three")["turns"] == [(PARTNER, "three")]


def test_agent_does_not_remember_silence():
    agent = Parrot(use_reply="model", history_size=2)
    assert exchange(agent, SILENCE)["turns"] == [(PARTNER, SILENCE)]
    assert exchange(agent, "hi")["turns"] == [(SELF, "1 turns"), (PARTNER, "hi")]


def test_agent_misuse_is_an_error():
    agent = Parrot()
    with pytest.raises(ProtocolError, match="self_observe"):
        agent.self_observe(Message(text="hi"))
    agent.observe(Message(text="a", agent="teacher"))
    with pytest.raises(ProtocolError, match="twice"):
        agent.observe(Message(text="b", agent="teacher"))


def test_agent_does_not_change_the_message():
    message = Message(text="hi", agent="teacher")
    assert ConversationAgent().observe(message) == {**message, "turns": [(PARTNER, "hi")]}
    assert message == {"text": "hi", "agent": "teacher"}


def test_agent_copies_have_their_own_history():
    agent = Parrot()
    copies = [agent.clone() for _ in range(3)]
    exchange(agent, "zero")
    for copy in copies:
        assert exchange(copy, "one")["turns"] == [(PARTNER, "one")]
    assert exchange(agent, "two")["turns"][0] == (PARTNER, "zero")


@given(st.lists(st.tuples(st.none() | TURNS, st.text(max_size=3)), max_size=5), SIZES)
def test_agent_gets_the_same_turns_of_a_batch_as_of_single_messages(rows, size):
    agent = ConversationAgent(history_size=size)
    messages = [
        Message(text=text, **({} if context is None else {"context": context}))
        for context, text in rows
    ]
    observed = [agent.clone().observe(message) for message in messages]
    expected = [message["turns"] for message in observed]
    assert Batch.of(messages).turns(size) == Batch.of(observed).turns(size) == expected


MESSAGES = st.fixed_dictionaries(
    {"text": st.sampled_from(["a", "b", "", SILENCE, None])},
    optional={
        "context": TURNS,
        "labels": st.lists(st.sampled_from(["x", "y"]), max_size=1),
        "episode_done": st.booleans(),
    },
)
SPEAKERS = st.lists(MESSAGES, min_size=1, max_size=2)  # Observed in turn before the agent acts.


@given(st.lists(SPEAKERS, max_size=5), SIZES, st.sampled_from(["label", "model", "none"]))
def test_agent_copy_restored_at_any_moment_continues_the_same(heard, size, use_reply):
    original = Parrot(history_size=size, use_reply=use_reply)
    copy = original.clone()
    restored = []

    def take(rest):
        """Return another copy that continues from here, and the messages it has yet to observe."""
        value = json.loads(json.dumps(copy.conversation_state()))
        other = original.clone()
        other.observe(Message(text="forget this", agent="before"))
        other.set_conversation_state(value)
        restored.append((other, rest))

    seen = []
    for number, messages in enumerate(heard):
        take(number)
        observations = []
        for speaker, message in enumerate(messages):
            observations.append(copy.observe(Message(message, agent=str(speaker))))
            take(number)  # Messages that wait for a reply are observed again.
        copy.self_observe(copy.act())
        seen.append(observations)
    take(len(heard))
    assert copy.conversation_state() == [list(turn) for turn in copy.conversation]
    for other, start in restored:
        for messages, expected in zip(heard[start:], seen[start:]):
            for speaker, (message, observed) in enumerate(zip(messages, expected)):
                assert other.observe(Message(message, agent=str(speaker))) == observed
            other.self_observe(other.act())
        assert other.conversation_state() == copy.conversation_state()


def test_agent_state_is_not_changed_by_later_turns():
    agent = Parrot()
    exchange(agent, "one")
    value = agent.conversation_state()
    assert value == [[PARTNER, "one"], [SELF, "1 turns"]]
    agent.set_conversation_state(value)
    assert agent.conversation == [(PARTNER, "one"), (SELF, "1 turns")]
    exchange(agent, "two")
    assert value == [[PARTNER, "one"], [SELF, "1 turns"]]


def test_agent_that_changes_what_its_model_sees_leaves_the_history_alone():
    class Persona(Parrot):
        def observe(self, message):
            observation = super().observe(message)
            observation["turns"] = [(PARTNER, "you are kind"), *observation["turns"]]
            return observation

    agent = Persona()
    exchange(agent, "one")
    assert exchange(agent, "two")["turns"] == [
        (PARTNER, "you are kind"), (PARTNER, "one"), (SELF, "2 turns"), (PARTNER, "two")
    ]  # fmt: skip
