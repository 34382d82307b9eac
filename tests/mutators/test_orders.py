"""Mutators that change the order of turns, lines and words, or leave turns alone."""

import copy
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.messages import PARTNER, SELF, SILENCE, Message
from thincdialog.mutators.context_shuffle import ContextShuffle
from thincdialog.mutators.episode_reverse import EpisodeReverse
from thincdialog.mutators.episode_shuffle import EpisodeShuffle
from thincdialog.mutators.flatten import Flatten
from thincdialog.mutators.last_turn import LastTurn
from thincdialog.mutators.word_reverse import WordReverse
from thincdialog.mutators.word_shuffle import WordShuffle
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


EACH = {
    "ContextShuffle": ContextShuffle,
    "EpisodeReverse": EpisodeReverse,
    "EpisodeShuffle": EpisodeShuffle,
    "LastTurn": LastTurn,
    "WordReverse": WordReverse,
    "WordShuffle": WordShuffle,
}


def applied(mutator, given_episodes):
    return [made for episode in given_episodes for made in mutator(episode)]


def messages(given_episodes):
    return [message for episode in given_episodes for message in episode]


@pytest.mark.parametrize("name", EACH)
@given(given_episodes=episodes())
@settings(max_examples=60)
def test_mutators_keep_all_but_the_order(name, given_episodes):
    before = copy.deepcopy(given_episodes)
    mutator = EACH[name]()
    made = applied(mutator, given_episodes)
    assert given_episodes == before
    assert made == applied(EACH[name](), copy.deepcopy(before)) == applied(mutator, given_episodes)
    old, new = messages(given_episodes), messages(made)
    assert [message["id"] for message in new] == [message["id"] for message in old]
    for was, now in zip(old, new):
        assert list(now) == list(was)
        rest = set(was) - {"text", "context"}
        assert {field: now[field] for field in rest} == {field: was[field] for field in rest}
    if name != "LastTurn":
        assert list(map(len, made)) == list(map(len, given_episodes))
        letters = [Counter("".join(message["text"] for message in part)) for part in (old, new)]
        assert letters[0] == letters[1]


@pytest.mark.parametrize("mutator", [WordReverse(), WordShuffle(3)])
@given(given_episodes=episodes(1))
@settings(max_examples=60)
def test_word_mutators_keep_the_words_of_each_line(mutator, given_episodes):
    for was, now in zip(messages(given_episodes), messages(applied(mutator, given_episodes))):
        pairs = [(was["text"], now["text"])]
        pairs += [
            (old[1], new[1]) for old, new in zip(was.get("context", ()), now.get("context", ()))
        ]
        for old, new in pairs:
            lines = old.split("\n"), new.split("\n")
            assert [Counter(line.split(" ")) for line in lines[0]] == [
                Counter(line.split(" ")) for line in lines[1]
            ]


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


@given(episodes(1))
def test_context_shuffle_keeps_the_last_line_last_and_who_spoke(given_episodes):
    made = applied(ContextShuffle(), given_episodes)
    for was, now in zip(messages(given_episodes), messages(made)):
        *old, last = was["text"].split("\n")
        *new, still = now["text"].split("\n")
        assert still == last and Counter(new) == Counter(old)
        assert Counter(now.get("context", ())) == Counter(was.get("context", ()))


def conversation(*texts):
    return [
        Message(id=f"c/{turn}", text=text, labels=[f"y{turn}"]) for turn, text in enumerate(texts)
    ]


def texts_of(given_messages):
    return [message["text"] for message in given_messages]


def test_episode_reverse_keeps_the_opening_lines_and_silence():
    episode = conversation("persona\nx0", "x1\nx1b", "x2")
    (made,) = EpisodeReverse()(episode)
    assert texts_of(made) == ["persona\nx2", "x1\nx1b", "x0"]
    assert [message["labels"] for message in made] == [["y0"], ["y1"], ["y2"]]
    assert texts_of(EpisodeReverse(keep_context=False)(episode)[0]) == [
        "x2", "x1\nx1b", "persona\nx0",
    ]  # fmt: skip
    opened = conversation(SILENCE, "x1", "x2")
    assert texts_of(EpisodeReverse()(opened)[0]) == [SILENCE, "x2", "x1"]


@given(st.integers(1, 8), st.integers(0, 3))
def test_episode_shuffle_moves_texts_only(n_turns, seed):
    episode = conversation("persona\nx0", *(f"x{turn}" for turn in range(1, n_turns)))
    (made,) = EpisodeShuffle(seed)(episode)
    first, *rest = texts_of(made)
    assert first.startswith("persona\n")
    assert sorted([first[8:], *rest]) == sorted(f"x{turn}" for turn in range(n_turns))


def test_episode_shuffle_shuffles():
    episode = conversation(*map(str, range(30)))
    assert len({tuple(texts_of(EpisodeShuffle(seed)(episode)[0])) for seed in range(5)}) == 5


def test_last_turn_knows_the_opening_lines_only():
    episode = conversation("persona\nx0", "x1\nx1b", "x2")
    assert [texts_of(one) for one in LastTurn()(episode)] == [
        ["persona\nx0"], ["persona\nx1\nx1b"], ["persona\nx2"],
    ]  # fmt: skip
    assert [texts_of(one) for one in LastTurn(keep_context=False)(episode)] == [
        ["persona\nx0"], ["x1\nx1b"], ["x2"],
    ]  # fmt: skip
    flat = applied(LastTurn(), Flatten()(episode))
    assert [message["context"] for message in messages(flat)] == [[], [], []]
    assert LastTurn().single_turn


def test_orders_compose_as_they_stand():
    episode = conversation("a b", "c d")
    one = applied(Flatten(), WordReverse()(episode))
    two = applied(WordReverse(), Flatten()(episode))
    assert one[1][0]["context"] == [(PARTNER, "b a"), (SELF, "y0")] == two[1][0]["context"]
    after = applied(Flatten(), EpisodeReverse()(episode))
    assert after[1][0]["context"][0] == (PARTNER, "c d")
    # An episode of one turn has no order.
    before = applied(EpisodeReverse(), Flatten()(episode))
    assert before == Flatten()(episode)


def test_mutators_of_orders_are_registered():
    for name, function in EACH.items():
        assert registry.mutators.get(f"thincdialog.{name}.v1") is function
