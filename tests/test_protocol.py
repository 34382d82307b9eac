"""The agent contract: turns are taken in order, and copies share what is heavy."""

import tracemalloc

import pytest

from thincdialog.agents.conversation import ConversationAgent
from thincdialog.errors import ProtocolError
from thincdialog.messages import Message
from thincdialog.protocol import Agent, can_batch


class Echo(Agent):
    id = "echo"

    def __init__(self):
        self.weights = [1.0] * 1000

    def batch_act(self, observations):
        return [Message(text=each["text"]) for each in observations]


class Mute(Agent):
    use_batch_act = False

    def batch_act(self, observations):
        return []


def said(text, agent="teacher"):
    return Message(text=text, agent=agent)


def test_protocol_observe_act_self_observe_and_again():
    agent = Echo()
    for text in ("one", "two"):
        agent.observe(said(text))
        reply = agent.act()
        assert reply["text"] == text
        agent.self_observe(reply)


@pytest.mark.parametrize(
    "calls, message",
    [
        ("a", r"echo\.act\(\) was called before observe\(\)"),
        ("oa a", r"echo\.act\(\) was called twice: call self_observe\(\)"),
        ("oas a", r"echo\.act\(\) was called before observe\(\)"),
        ("oo", r"echo\.observe\(\) was called twice without act\(\)"),
        ("oao", r"echo\.observe\(\) was called twice without act\(\).*self_observe\(\)"),
        ("s", r"echo\.self_observe\(\) was called before observe\(\)"),
        ("oas s", r"echo\.self_observe\(\) was called before observe\(\)"),
    ],
)
def test_protocol_misuse_names_the_call(calls, message):
    agent = Echo()
    steps = {
        "o": lambda: agent.observe(said("hi")),
        "a": agent.act,
        "s": lambda: agent.self_observe(said("hi")),
    }
    *before, last = calls.replace(" ", "")
    for call in before:
        steps[call]()
    with pytest.raises(ProtocolError, match=message):
        steps[last]()


def test_protocol_several_speakers_may_be_heard_before_an_act():
    agent = Echo()
    agent.observe(said("one", agent="a"))
    agent.observe(said("two", agent="b"))
    assert agent.act()["text"] == "two"


def test_protocol_copy_shares_everything_but_the_conversation():
    agent = Echo()
    agent.observe(said("hi"))
    agent.act()
    copy = agent.clone()
    assert copy.weights is agent.weights and copy.share()["weights"] is agent.weights
    assert copy.observation is None and not copy.has_acted
    copy.observe(said("ho"))
    assert agent.observation == said("hi")
    agent.reset()
    assert agent.observation is None and copy.observation == said("ho")


def test_protocol_batches_only_where_the_agent_can_and_wants():
    assert can_batch(Echo())
    assert not can_batch(Mute()) and not can_batch(Agent())
    with pytest.raises(NotImplementedError, match="neither act"):
        agent = Agent()
        agent.observe(said("hi"))
        agent.act()


def test_protocol_observe_that_keeps_nothing_is_told_what_is_missing():
    class Deaf(Echo):
        def observe(self, message):
            return message

    agent = Deaf()
    agent.observe(said("hi"))
    for call in (agent.act, lambda: agent.self_observe(said("ho"))):
        with pytest.raises(ProtocolError, match=r"must call super\(\)\.observe\(message\)"):
            call()


def test_protocol_agent_that_keeps_nothing_has_no_conversation_to_save():
    agent = Echo()
    agent.observe(said("hi"))
    assert agent.conversation_state() is None
    agent.set_conversation_state(None)
    assert agent.observation is None
    agent.observe(said("hi"))  # what waited is heard anew
    assert agent.act()["text"] == "hi"
    assert not agent.can_truncate


@pytest.mark.parametrize("make", [Agent, Echo, ConversationAgent])
def test_protocol_copies_are_small(make):
    agent = make()
    n_copies = 200
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        copies = [agent.clone() for _ in range(n_copies)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / len(copies) < 1000
