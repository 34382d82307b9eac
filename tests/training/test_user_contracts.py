"""Batchers, mutators and tokenizers of a user's that do not do what they must: one error that
names them, and no traceback."""

import io
import re

import numpy as np
import pytest

from tests.training.examples import RANKER
from thincdialog.api import (
    Batcher,
    ConfigError,
    DataError,
    DialogError,
    Message,
    Tokenizer,
    registry,
    train,
)

MUTATOR = """[tasks.coffee.mutators.*.own]
@mutators = "test_user_contracts.mutator.v1"
kind = "{}"
"""
TOKENIZER = '"test_user_contracts.tokenizer.v1"\nkind = "{}"'


class Forgetful(Batcher):
    needs_lengths = False

    def __init__(self):
        self.mine = 3

    def plan(self, lengths, limit, rng):
        return [np.arange(len(lengths.counts))]


@registry.batchers("test_user_contracts.forgetful.v1")
def forgetful() -> Batcher:
    return Forgetful()


class Whole:
    """A mutator that sees the whole split."""

    def rewrite(self, episodes, split):
        return None


GIVEN = {
    "nothing": lambda episode: None,
    "an episode": lambda episode: episode,
    "texts": lambda episode: ["hi"],
    "dicts": lambda episode: [[dict(message) for message in episode]],
    "a good one": lambda episode: [[Message(message) for message in episode]],
    "whole": Whole(),
    "no mutator": None,
}


@registry.mutators("test_user_contracts.mutator.v1")
def mutator(kind: str):
    return GIVEN[kind]


class Odd(Tokenizer):
    needs_texts = False
    n_ids = 20

    def __init__(self, kind):
        self.kind = kind

    def encode(self, text):
        return {
            "nothing": None,
            "list": [12, 13],
            "fractions": np.array([12.5]),
            "rows": np.array([[12]]),
            "too large": np.array([12, 20]),
            "negative": np.array([-1]),
            "good": np.array([12, 19]),
        }[self.kind]


@registry.tokenizers("test_user_contracts.tokenizer.v1")
def tokenizer(kind: str) -> Tokenizer:
    return Odd(kind)


def run(config):
    silent = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    return train(config, overrides={"training.max_steps": 2}, **silent)


@pytest.mark.parametrize("is_flat", [True, False])
def test_a_batcher_that_forgets_what_it_inherits(is_flat):
    config, n = re.subn(
        r"\[world.batcher\]\n(@.*\n)?(\w.*\n)*",
        '[world.batcher]\n@batchers = "test_user_contracts.forgetful.v1"\n',
        RANKER,
    )
    assert n == 1
    if not is_flat:
        config = config.replace("[tasks.coffee.mutators.*.flatten]\n", "").replace(
            '@mutators = "thincdialog.Flatten.v1"\n', ""
        )
    with pytest.raises(DialogError, match=r"Forgetful has no \w+: call super\(\).__init__\(siz"):
        run(config)
    assert not hasattr(Forgetful(), "other")


@pytest.mark.parametrize(
    "kind, said",
    [
        ("nothing", r"<lambda> \(\S*_contracts.py:\d+\) gave 'None' \(NoneType\) for the "),
        ("an episode", r"gave among others .* \(Message\) for the episode of '0/0'"),
        ("texts", r"gave among others 'hi' \(str\) for the episode of '0/0'"),
        ("dicts", r"gave among others .* \(list\) for the episode of '0/0'"),
        ("whole", r"the mutator Whole \(.*\) gave 'None' \(NoneType\) for the split 'train'"),
    ],
)
def test_a_mutator_that_gives_no_episodes(kind, said):
    with pytest.raises(DataError, match=said) as caught:
        run(RANKER + MUTATOR.format(kind))
    expected = "expected a list of episodes, each a list of Message objects"
    assert str(caught.value).endswith(expected) and "\n" not in str(caught.value)


def test_a_mutator_that_is_none():
    with pytest.raises(ConfigError, match="'None' .NoneType. is no mutator - let its registered"):
        run(RANKER + MUTATOR.format("no mutator"))


@pytest.mark.parametrize(
    "kind, shown",
    [
        ("nothing", "None"),
        ("list", r"\[12, 13\]"),
        ("fractions", r"array\(\[12.5\]\)"),
        ("rows", r"array\(\[\[12\]\]\)"),
        ("too large", r"array\(\[12, 20\]\)"),
        ("negative", r"array\(\[-1\]\)"),
    ],
)
def test_a_tokenizer_that_gives_no_ids(kind, shown):
    config = RANKER.replace('"thincdialog.Words.v1"', TOKENIZER.format(kind))
    with pytest.raises(DataError, match=rf"Odd.encode\(\) \(.*\) gave {shown} for '.*': exp") as e:
        run(config)
    assert "each 0 to 19 (n_ids is 20)" in str(e.value)


def test_good_ones_train():
    config = RANKER.replace('"thincdialog.Words.v1"', TOKENIZER.format("good"))
    assert run(config + MUTATOR.format("a good one")).stopped_because == "max_steps = 2 reached"
