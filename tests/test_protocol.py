"""The agent contract: turns are taken in order, and copies share large objects."""

import tracemalloc

import pytest

from thincdialog.agents.conversation import ConversationAgent
from thincdialog.errors import ProtocolError
from thincdialog.messages import Message
from thincdialog.protocol import Agent


class Echo(Agent):
    id = "echo"

    def __init__(self):
        self.weights = [1.0] * 1000

    def batch_act(self, observations):
        return [Message(text=each["text"]) for each in observations]


class Mute(Echo):
    use_batch_act = False


class Deaf(Echo):
    def observe(self, message):
        return message


def said(text, agent="teacher"):
    return Message(text=text, agent=agent)


def call(agent, letters):
    """Call the agent's methods by their letters: o for observe, a for act, s for self_observe."""
    for letter in letters:
        if letter == "a":
            agent.act()
        else:
            (agent.observe if letter == "o" else agent.self_observe)(said("hi"))
    return agent


def test_protocol_observe_act_self_observe_and_again():
    agent = Echo()
    for text in ("one", "two"):
        agent.observe(said(text))
        reply = agent.act()
        assert reply["text"] == text
        agent.self_observe(reply)
    # Several speakers may be observed before act().
    agent.observe(said("three", agent="a"))
    agent.observe(said("four", agent="b"))
    assert agent.act()["text"] == "four"


@pytest.mark.parametrize(
    "make, before, last, message",
    [
        (Echo, "", "a", r"echo\.act\(\) was called before observe\(\)"),
        (Echo, "oa", "a", r"echo\.act\(\) was called twice: call self_observe\(\)"),
        (Echo, "oas", "a", r"echo\.act\(\) was called before observe\(\)"),
        (Echo, "o", "o", r"echo\.observe\(\) was called twice without act\(\)"),
        (Echo, "oa", "o", r"echo\.observe\(\) was called twice without act\(\).*self_observe\(\)"),
        (Echo, "", "s", r"echo\.self_observe\(\) was called before observe\(\)"),
        (Echo, "oas", "s", r"echo\.self_observe\(\) was called before observe\(\)"),
        # Misuse after an observe() that does not call super().
        (Deaf, "o", "a", r"must call super\(\)\.observe\(message\)"),
        (Deaf, "o", "s", r"must call super\(\)\.observe\(message\)"),
    ],
)
def test_protocol_misuse_names_the_call(make, before, last, message):
    agent = call(make(), before)
    with pytest.raises(ProtocolError, match=message):
        call(agent, last)


def test_protocol_copy_shares_everything_but_the_conversation():
    agent = call(Echo(), "oa")
    copy = agent.clone()
    assert copy.weights is agent.weights and copy.share()["weights"] is agent.weights
    assert copy.observation is None and not copy.has_acted
    copy.observe(said("ho"))
    assert agent.observation == said("hi")
    agent.reset()
    assert agent.observation is None and copy.observation == said("ho")


def test_protocol_batches_only_where_the_agent_can_and_wants():
    assert Echo().can_batch
    assert not Mute().can_batch and not Agent().can_batch
    with pytest.raises(NotImplementedError, match="neither act"):
        call(Agent(), "oa")


def test_protocol_agent_that_keeps_nothing_has_no_conversation_to_save():
    agent = call(Echo(), "o")
    assert agent.conversation_state() is None and not agent.can_truncate
    agent.set_conversation_state(None)
    assert agent.observation is None
    assert call(agent, "oa").observation["text"] == "hi"  # The pending message is observed again.


@pytest.mark.parametrize("make", [Agent, Echo, ConversationAgent])
def test_protocol_copies_are_small(make):
    agent, n_copies = make(), 200
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        copies = [agent.clone() for _ in range(n_copies)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / len(copies) < 1000
