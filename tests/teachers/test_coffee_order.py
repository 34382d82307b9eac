"""The generated task: sound dialogues, and no way around understanding them."""

import re
from collections import Counter

import pytest

from thincdialog.errors import ConfigError
from thincdialog.teachers import coffee_menu as menu
from thincdialog.teachers.coffee_order import CoffeeOrder


@pytest.fixture(scope="module")
def teacher():
    return CoffeeOrder(n_train=400, n_dev=100, n_test=100)


def dialogues(teacher, split):
    return list(teacher.first_episodes(split, 9999))


def test_coffee_order_dialogues_have_four_to_six_turns(teacher):
    counts = Counter(len(dialogue) for dialogue in dialogues(teacher, "train"))
    assert set(counts) == {4, 5, 6} and sum(counts.values()) == 400


def test_coffee_order_candidates_are_one_sentence_with_other_words(teacher):
    for message in teacher.for_split("dev").examples():
        candidates = message["label_candidates"]
        assert len(set(candidates)) == len(candidates) == 20
        assert len(message["eval_labels"]) == 1 and message["eval_labels"][0] in candidates
        names = [*menu.DRINKS, *menu.CUPS, *menu.EXTRAS, *menu.TEMPERATURES, *menu.PLACES,
                 *menu.WAITERS.values(), r"\d+"]  # fmt: skip
        blank = re.compile("|".join(names))
        sentences = {
            re.sub(r"\b([Aa])n ", r"\1 ", blank.sub("_", candidate)) for candidate in candidates
        }
        assert len(sentences) == 1, sentences


def test_coffee_order_bill_follows_from_what_was_said(teacher):
    """The price, worked out from the guest's words alone, by the printed menu."""

    def said(words, text):
        return next(i for i, ways in enumerate(words.values())
                    for way in ways if way.lower() in text.lower())  # fmt: skip

    for dialogue in dialogues(teacher, "test"):
        drink = said(menu.DRINKS, dialogue[0]["text"])
        guest = dialogue[1]["text"]
        cup = next(i for i, ways in enumerate(menu.CUPS.values())
                   for way in ways if re.search(rf"\b{way}\b", guest, re.I))  # fmt: skip
        # "two lumps" before "whipped cream": no way of saying one holds another's.
        extra = said(menu.EXTRAS, guest)
        for message in dialogue[2:-1]:
            cup += message["text"] in menu.BIGGER
            cup -= message["text"] in menu.SMALLER
        assert int(re.search(r"\d+", dialogue[-1]["labels"][0])[0]) == 3 + drink + 2 * cup + extra


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
    # Chance is 5 %.
    assert n_right["frequent"] < 0.15 * len(examples) and n_right["overlap"] < 0.25 * len(examples)


def test_coffee_order_refuses_an_empty_split():
    with pytest.raises(ConfigError, match="'n_dev' of thincdialog.CoffeeOrder.v1 is 0"):
        CoffeeOrder(n_dev=0)
