"""Flatten and WithoutOpenings: the worked example of the docs, and what they must not do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.errors import ConfigError
from thincdialog.messages import PARTNER, SELF, SILENCE, Message
from thincdialog.mutators.flatten import Flatten
from thincdialog.mutators.without_openings import WithoutOpenings


def conversation(n_turns):
    return [
        Message(id=f"c/{turn}", text=f"x{turn}", labels=[f"y{turn}", "other"])
        for turn in range(1, n_turns + 1)
    ]


def words(message):
    return [text for _, text in message["context"]] + [message["text"]]


@pytest.mark.parametrize(
    "context_length, include_labels, expected",
    [(3, True, "x2 y2 x3 y3 x4"), (-1, False, "x1 x2 x3 x4"), (1, True, "x4")],
)
def test_flatten_worked_example(context_length, include_labels, expected):
    episodes = Flatten(context_length, include_labels)(conversation(4))
    assert [len(episode) for episode in episodes] == [1, 1, 1, 1]
    fourth = episodes[3][0]
    assert words(fourth) == expected.split()
    assert fourth["labels"] == ["y4", "other"] and fourth["id"] == "c/4"
    roles = {text[0]: role for role, text in fourth["context"]}
    assert roles.get("x", PARTNER) == PARTNER and roles.get("y", SELF) == SELF


@given(st.integers(0, 7), st.integers(1, 9) | st.just(-1), st.booleans())
def test_flatten_is_what_a_listener_would_keep(n_turns, context_length, include_labels):
    given_messages = conversation(n_turns)
    before = [dict(message) for message in given_messages]
    episodes = Flatten(context_length, include_labels)(given_messages)
    heard = []
    for number, (example,) in enumerate(episodes):
        heard.append(("x", number + 1))
        first = number + 1 - (context_length - 1 if context_length > 0 else number + 1)
        kept = [f"{side}{turn}" for side, turn in heard if turn >= first or turn == number + 1]
        assert words(example) == kept
        if include_labels:
            heard.append(("y", number + 1))
    assert len(episodes) == n_turns
    assert [dict(message) for message in given_messages] == before


def test_flatten_squashes_the_context_into_the_text():
    for settings, text in (((3, True), "x2\ny2\nx3\ny3\nx4"), ((-1, False), "x1\nx2\nx3\nx4")):
        before = conversation(4)
        (example,) = Flatten(*settings, squash=True)(before)[-1]
        assert example == {**before[-1], "text": text}
    assert [message["text"] for message in before] == ["x1", "x2", "x3", "x4"]


def test_flatten_keeps_a_context_that_is_there():
    once = Flatten()(conversation(3))[2]
    assert Flatten()(once) == [once]


@pytest.mark.parametrize("context_length", [0, -2])
def test_flatten_refuses_a_length_without_turns(context_length):
    with pytest.raises(ConfigError, match=f"context_length.*is {context_length}.*give 1 or more"):
        Flatten(context_length)


def test_silence_is_in_no_context_and_answers_to_it_can_be_dropped():
    episode = [Message(text=SILENCE, labels=["y1"]), Message(text="x2", labels=["y2"])]
    first, second = Flatten()(episode)
    assert first == [Message(text=SILENCE, labels=["y1"], context=[])]
    assert second == [Message(text="x2", labels=["y2"], context=[(SELF, "y1")])]
    assert WithoutOpenings()(first) == [[]] and WithoutOpenings()(second) == [second]
