"""The generated task: its dialogues make sense, and there is no shortcut to the right reply."""

import re
from collections import Counter

import pytest

from thincdialog.api import load, load_config, train
from thincdialog.errors import ConfigError
from thincdialog.teachers.coffee_order import MENU, CoffeeOrder


@pytest.fixture(scope="module")
def teacher():
    return CoffeeOrder(n_train=400, n_dev=100, n_test=100)


def dialogues(teacher, split):
    return list(teacher.data[split].episodes())


def kind_of(reply):
    """Return the kind of a reply, which is that of its sentence. Any words may fill its gaps."""
    for kind, sentences in MENU["replies"].items():
        for sentence in sentences:
            parts = map(re.escape, re.split(r"\{\w+\}", sentence))
            if re.fullmatch(".+?".join(parts), reply):
                return kind
    raise AssertionError(reply)


def test_coffee_order_dialogues_have_four_to_eight_turns(teacher):
    counts = Counter(len(dialogue) for dialogue in dialogues(teacher, "train"))
    assert set(counts) == {4, 5, 6, 7, 8} and sum(counts.values()) == 400


def test_coffee_order_barista_greets_serves_and_says_goodbye_in_turn(teacher):
    for dialogue in dialogues(teacher, "train"):
        kinds = [kind_of(message["labels"][0]) for message in dialogue]
        assert re.fullmatch(
            r"(greet )?order size ((change|where|why) ){1,2}pay ?(thanks ?)?(bye)?", " ".join(kinds)
        )


@pytest.mark.slow
def test_coffee_order_candidates_of_an_order_differ_in_few_words(teacher):
    kinds = ("drinks", "cups", "extras", "temperatures", "places")
    names = [name for kind in kinds for name in MENU[kind]]
    blank = re.compile("|".join([*names, *MENU["waiters"].values(), r"\d\.\d\d"]))
    n_talks = 0
    for message in teacher.for_split("dev").examples():
        candidates, (label,) = message["label_candidates"], message["eval_labels"]
        assert len(set(candidates)) == len(candidates) == 20 and label in candidates
        kind = kind_of(label)
        if kind in ("greet", "why", "thanks", "bye"):
            n_talks += 1
            # There are four greetings, one of which fits the guest's. Of other kinds, the label is
            # the only reply.
            n_same = sum(kind_of(candidate) == kind for candidate in candidates)
            assert n_same == (4 if kind == "greet" else 1)
            assert len({kind_of(candidate) for candidate in candidates}) > 4
        else:
            assert len({blank.sub("_", candidate) for candidate in candidates}) == 1
    assert n_talks > 100


def test_coffee_order_greets_as_the_guest_does(teacher):
    found = Counter()
    for dialogue in dialogues(teacher, "train"):
        if kind_of(dialogue[0]["labels"][0]) == "greet":
            (greeting,) = (
                g for g, ways in MENU["greetings"].items() if dialogue[0]["text"] in ways
            )
            assert dialogue[0]["labels"][0].startswith(greeting)
            found[greeting] += 1
    assert set(found) == set(MENU["greetings"])


def test_coffee_order_bill_follows_from_what_was_said(teacher):
    """The price can be computed from the guest's words and the menu."""

    def said(words, text, otherwise=None):
        found = {i for i, ways in enumerate(words.values()) for way in ways
                 if re.search(rf"\b{re.escape(way)}\b", text, re.I)}  # fmt: skip
        assert len(found) == 1 or (not found and otherwise is not None), (text, found)
        return found.pop() if found else otherwise

    for dialogue in dialogues(teacher, "test"):
        kinds = [kind_of(message["labels"][0]) for message in dialogue]
        order = kinds.index("order")
        drink = said(MENU["drinks"], dialogue[order]["text"])
        cup = said(MENU["cups"], dialogue[order + 1]["text"])
        extra = said(MENU["extras"], dialogue[order + 1]["text"], otherwise=0)
        for message in dialogue[order + 2 :]:
            cup += message["text"] in MENU["bigger"]
            cup -= message["text"] in MENU["smaller"]
        bill = dialogue[kinds.index("pay")]["labels"][0]
        cents = int(re.sub(r"\D", "", bill))
        assert cents == 200 + 20 * drink + 60 * cup + 20 * (extra > 0)


def test_coffee_order_splits_share_no_dialogue_and_seeds_differ(teacher):
    def texts(source, split):
        return {"|".join(m["text"] for m in dialogue) for dialogue in dialogues(source, split)}

    train, dev, test = (texts(teacher, split) for split in ("train", "dev", "test"))
    assert not train & dev and not train & test and not dev & test
    same = CoffeeOrder(n_train=10, n_dev=1, n_test=100, streaming=True)
    assert texts(same, "test") == test and texts(same, "train") <= train
    assert not texts(CoffeeOrder(n_train=10, seed=1), "train") & train


def test_coffee_order_is_not_given_away_by_frequency_or_shared_words(teacher):
    counts = Counter(m["labels"][0] for m in teacher.for_split("train", training=True).examples())
    n_right = Counter()
    examples = list(teacher.for_split("dev").examples())
    for message in examples:
        candidates, label = message["label_candidates"], message["eval_labels"][0]
        heard = set(" ".join([*(t for _, t in message["context"]), message["text"]]).split())
        guesses = {
            "frequent": max(candidates, key=counts.__getitem__),
            "overlap": max(candidates, key=lambda c: len(heard & set(c.split()))),
        }
        n_right.update(name for name, guess in guesses.items() if guess == label)
    # By chance, 5 % would be right.
    assert n_right["frequent"] < 0.15 * len(examples) and n_right["overlap"] < 0.25 * len(examples)


def test_coffee_order_refuses_an_empty_split():
    with pytest.raises(ConfigError, match="'n_dev' of thincdialog.CoffeeOrder.v1 is 0"):
        CoffeeOrder(n_dev=0)


SAID = {
    "hello": ("greet", "Hello"), "Hi!": ("greet", "Hello"),
    "good morning": ("greet", "Good morning"), "Good evening!": ("greet", "Good evening"),
    "thanks": ("thanks", ""), "Thank you so much": ("thanks", ""),
    "bye": ("bye", ""), "Goodbye!": ("bye", ""),
}  # fmt: skip


@pytest.mark.slow
def test_quickstart_answers_small_talk_and_ranks_the_right_reply_first(root, tmp_path):
    config = load_config(root / "configs" / "quickstart.cfg", {"system.seed": 1}).config
    config["baselines"] = {}
    result = train(config, output=tmp_path)
    assert result.scores["test"]["hits@1"] >= 0.99 and result.scores["dev"]["hits@1"] >= 0.99
    chatbot = load(tmp_path / "model-best")
    for text, (kind, start) in SAID.items():
        chatbot.reset()
        reply = chatbot.respond(text)
        assert kind_of(reply) == kind and reply.startswith(start), (text, reply)
    # The same in one conversation.
    chatbot.reset()
    for text in ("good morning", "a coffee please", "small", "thanks", "bye"):
        reply = chatbot.respond(text)
        assert kind_of(reply) == SAID.get(text, ("order" if "coffee" in text else "size",))[0]
