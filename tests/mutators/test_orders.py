"""Mutators that change the order of turns, lines and words, or keep single turns."""

import copy
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.messages import PARTNER, SELF, SILENCE, Message
from thincdialog.mutators.flatten import Flatten
from thincdialog.registry import registry

TEXTS = st.text("ab \n", max_size=12) | st.just(SILENCE) | st.sampled_from(["x y z\nq", "é ü"])
MESSAGES = st.builds(
    lambda text, labels, extra: {"text": text, "labels": labels, **extra},
    TEXTS,
    st.lists(st.text("uv w", max_size=5), min_size=1, max_size=3),
    st.fixed_dictionaries({}, optional={"reward": st.integers(0, 3), "topic": st.text("t")}),
)


@st.composite
def episodes(draw, min_size=0):
    found = draw(st.lists(MESSAGES, min_size=min_size, max_size=6))
    made = [Message(message, id=f"e/{turn}") for turn, message in enumerate(found)]
    return draw(st.sampled_from([[made], Flatten()(made)])) or [[]]


NAMES = "ContextShuffle EpisodeReverse EpisodeShuffle LastTurn WordReverse WordShuffle".split()
EACH = [registry.mutators.get(f"thincdialog.{name}.v1") for name in NAMES]
ContextShuffle, EpisodeReverse, EpisodeShuffle, LastTurn, WordReverse, WordShuffle = EACH


def applied(mutator, given_episodes):
    return [made for episode in given_episodes for made in mutator(episode)]


def messages(given_episodes):
    return [message for episode in given_episodes for message in episode]


def words_of_lines(text):
    return [Counter(line.split(" ")) for line in text.split("\n")]


@pytest.mark.parametrize("mutator", EACH)
@given(given_episodes=episodes())
@settings(max_examples=60)
def test_mutators_keep_all_but_the_order(mutator, given_episodes):
    before = copy.deepcopy(given_episodes)
    made = applied(mutator(), given_episodes)
    assert given_episodes == before
    assert made == applied(mutator(), given_episodes)
    old, new = messages(given_episodes), messages(made)
    assert [message["id"] for message in new] == [message["id"] for message in old]
    for was, now in zip(old, new):
        assert list(now) == list(was)
        rest = set(was) - {"text", "context"}
        assert {field: now[field] for field in rest} == {field: was[field] for field in rest}
        if mutator in (WordReverse, WordShuffle):
            assert words_of_lines(now["text"]) == words_of_lines(was["text"])
            for (_, then), (_, said) in zip(was.get("context", ()), now.get("context", ())):
                assert words_of_lines(said) == words_of_lines(then)
        if mutator is ContextShuffle:
            (*lines, last), (*shuffled, still) = was["text"].split("\n"), now["text"].split("\n")
            assert still == last and Counter(shuffled) == Counter(lines)
            assert Counter(now.get("context", ())) == Counter(was.get("context", ()))
    if mutator is not LastTurn:
        assert list(map(len, made)) == list(map(len, given_episodes))
        letters = [Counter("".join(message["text"] for message in part)) for part in (old, new)]
        assert letters[0] == letters[1]


def test_word_reverse_by_hand():
    example = Message(id="1", text="a b\nc  d e", labels=["x y"], context=[(SELF, "p q")])
    assert WordReverse()([example]) == [
        [Message(id="1", text="b a\ne d  c", labels=["x y"], context=[(SELF, "q p")])]
    ]


def test_shuffles_differ_by_example_and_by_seed():
    words = " ".join(map(str, range(30)))
    given_messages = [Message(id=f"1/{turn}", text=words, labels=["x"]) for turn in range(4)]
    orders = [m["text"] for seed in (0, 1) for m in WordShuffle(seed)(given_messages)[0]]
    assert len(set(orders)) == 8 and words not in orders
    lines = [Message(m, text=words.replace(" ", "\n")) for m in given_messages]
    orders = [m["text"] for seed in (0, 1) for m in ContextShuffle(seed)(lines)[0]]
    assert len(set(orders)) == 8 and all(order.endswith("\n29") for order in orders)
    texts = list(map(str, range(30)))
    orders = {tuple(texts_of(EpisodeShuffle(seed)(conversation(*texts))[0])) for seed in range(5)}
    assert len(orders) == 5


def conversation(*texts):
    return [
        Message(id=f"c/{turn}", text=text, labels=[f"y{turn}"]) for turn, text in enumerate(texts)
    ]


def texts_of(given_messages):
    return [message["text"] for message in given_messages]


TALK = conversation("persona\nx0", "x1\nx1b", "x2")


def test_episode_orders_keep_the_opening_lines_and_silence():
    (made,) = EpisodeReverse()(TALK)
    assert texts_of(made) == ["persona\nx2", "x1\nx1b", "x0"]
    (made,) = EpisodeReverse(keep_context=False)(TALK)
    assert texts_of(made) == ["x2", "x1\nx1b", "persona\nx0"]
    (made,) = EpisodeReverse()(conversation(SILENCE, "x1", "x2"))
    assert texts_of(made) == [SILENCE, "x2", "x1"]
    for seed in range(4):
        first, *rest = texts_of(EpisodeShuffle(seed)(TALK)[0])
        assert first.startswith("persona\n")
        assert sorted([first.removeprefix("persona\n"), *rest]) == ["x0", "x1\nx1b", "x2"]


def test_last_turn_knows_the_opening_lines_only():
    assert list(map(texts_of, LastTurn()(TALK))) == [
        ["persona\nx0"], ["persona\nx1\nx1b"], ["persona\nx2"],
    ]  # fmt: skip
    assert list(map(texts_of, LastTurn(keep_context=False)(TALK))) == [
        ["persona\nx0"], ["x1\nx1b"], ["x2"],
    ]  # fmt: skip
    flat = applied(LastTurn(), Flatten()(TALK))
    assert [message["context"] for message in messages(flat)] == [[], [], []]
    assert LastTurn().single_turn


def test_orders_compose_in_their_order():
    episode = conversation("a b", "c d")
    one = applied(Flatten(), WordReverse()(episode))
    two = applied(WordReverse(), Flatten()(episode))
    assert one[1][0]["context"] == [(PARTNER, "b a"), (SELF, "y0")] == two[1][0]["context"]
    after = applied(Flatten(), EpisodeReverse()(episode))
    assert after[1][0]["context"][0] == (PARTNER, "c d")
    # An episode of one turn has only one order.
    assert applied(EpisodeReverse(), Flatten()(episode)) == Flatten()(episode)
