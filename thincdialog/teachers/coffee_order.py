"""A dialogue task that needs no download: ordering in a cafe with a language of its own."""

import random
import re
from functools import partial
from itertools import product
from typing import Any, Dict, Iterator, List, Optional, Sequence, Union

from ..errors import ConfigError, Problem
from ..messages import Episode, Message
from ..registry import registry
from . import coffee_menu as menu
from .teacher import Teacher

DRINKS, CUPS, EXTRAS = list(menu.DRINKS), list(menu.CUPS), list(menu.EXTRAS)
TEMPERATURES = list(menu.TEMPERATURES)
NAMES = {"drink": DRINKS, "temperature": TEMPERATURES, "cup": CUPS, "extra": EXTRAS}
N_CANDIDATES = 20
CHEAPEST = 3  # acorns


# More are no first data, but a mistyped number.
MAX_DIALOGUES = 10_000_000


@registry.teachers("thincdialog.CoffeeOrder.v1")
def CoffeeOrder(
    n_train: int = 3000,
    n_dev: int = 500,
    n_test: int = 500,
    seed: int = 0,
    mutators: Optional[Union[List[Any], Dict[str, Any]]] = None,
    streaming: bool = False,
) -> Teacher:
    """Guests order, change their minds and pay; the barista answers in the words of
    the house. Dialogues of 4 to 6 turns are generated from a seed.

    Each turn has 20 candidates, the same sentence with other drinks, cups, toppings,
    people or prices. The guest's words and the barista's hardly overlap, later turns
    change earlier choices, and most replies need what was said turns ago: what the
    drink costs depends on drink, topping and the cup as changed. So neither word
    overlap nor the most similar known dialogue finds the reply, but a small network
    learns it in seconds.

    n_train (int): Dialogues to train on, 1 or more.
    n_dev (int): Dialogues of the split `dev`, 1 or more.
    n_test (int): Dialogues of the split `test`, 1 or more.
    seed (int): Another seed makes other dialogues.
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    streaming (bool): Make the dialogues anew for every epoch instead of holding them.
    RAISES (ConfigError): If a split is to have no dialogue, or too many.
    """
    sizes = {"train": n_train, "dev": n_dev, "test": n_test}
    wrong = {split: n for split, n in sizes.items() if not 1 <= n <= MAX_DIALOGUES}
    if wrong:
        texts = (f"'n_{split}' of thincdialog.CoffeeOrder.v1 is {n}" for split, n in wrong.items())
        hint = f"give 1 to {MAX_DIALOGUES:,}"
        raise ConfigError([Problem("", text, hint) for text in texts])
    return Teacher(
        {split: partial(coffee_orders, n, f"{seed}/{split}") for split, n in sizes.items()},
        mutators=mutators,
        streaming=streaming,
        origin="thincdialog.CoffeeOrder.v1",
    )


def coffee_orders(n_dialogues: int, seed: str) -> Iterator[Episode]:
    """Dialogues of guests with the barista; the same for the same seed.

    n_dialogues (int): How many.
    seed (str): Seed of the first draw of every dialogue, with its number.
    """
    for number in range(n_dialogues):
        yield CoffeeDialogue(random.Random(f"{seed}/{number}")).turns()


class CoffeeDialogue:
    """One guest: what was ordered so far, and how it is said.

    rng (random.Random): Decides on everything.
    """

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.ordered = {what: rng.choice(names) for what, names in NAMES.items()}

    def turns(self) -> Episode:
        """The dialogue: order, cup and topping, one to three of (a new cup, another
        temperature, where to wait) in any order, and the bill."""
        middle = [self._resize, self._reheat, self._where]
        self.rng.shuffle(middle)
        n_middle = self.rng.choice([1, 2, 2, 3])
        return [step() for step in (self._order, self._size, *middle[:n_middle], self._pay)]

    def _order(self) -> Message:
        drink = self.rng.choice(menu.DRINKS[self.ordered["drink"]])
        served = self.rng.choice(menu.TEMPERATURES[self.ordered["temperature"]])
        stay = self.rng.choice(menu.STAYS)
        text = self._say(menu.ORDERS, drink=drink, served=served, stay=stay)
        text = f"{self.rng.choice(menu.OPENINGS)} {text}"
        return self._turn(text, "order", temperature=TEMPERATURES, drink=DRINKS)

    def _size(self) -> Message:
        size = self.rng.choice(menu.CUPS[self.ordered["cup"]])
        extra = self.rng.choice(menu.EXTRAS[self.ordered["extra"]])
        text = self._say(menu.SIZES, size=size, extra=extra)
        drinks, cups = self._with_others("drink", 2), self._with_others("cup", 2)
        return self._turn(text, "size", drink=drinks, cup=cups, extra=EXTRAS)

    def _resize(self) -> Message:
        old = self.ordered["cup"]
        sizes = [CUPS.index(old) + step for step in (-1, 1)]
        size = self.rng.choice([size for size in sizes if 0 <= size < len(CUPS)])
        self.ordered["cup"] = CUPS[size]
        sentences = menu.BIGGER if size > CUPS.index(old) else menu.SMALLER
        return self._change(self._say(sentences), [old, CUPS[size]])

    def _reheat(self) -> Message:
        (other,) = set(TEMPERATURES) - {self.ordered["temperature"]}
        self.ordered["temperature"] = other
        served = self.rng.choice(menu.TEMPERATURES[other])
        cups = self._with_others("cup", 2)
        return self._change(self._say(menu.OTHER_WAY, served=served), cups)

    def _change(self, text: str, cups: List[str]) -> Message:
        drinks = self._with_others("drink", 5)
        return self._turn(text, "change", temperature=TEMPERATURES, drink=drinks, cup=cups)

    def _where(self) -> Message:
        waiters = list(menu.WAITERS.values())
        return self._turn(self._say(menu.WHERE), "where", waiter=waiters, place=menu.PLACES)

    def _pay(self) -> Message:
        prices = [str(CHEAPEST + acorns) for acorns in range(N_CANDIDATES)]
        return self._turn(self._say(menu.PAY), "pay", acorns=prices)

    def _turn(self, text: str, kind: str, **values: List[str]) -> Message:
        """A turn whose candidates are one sentence with all combinations of values."""
        sentence = self.rng.choice(menu.REPLIES[kind])
        replies = [
            _sentence(sentence, dict(zip(values, combination)))
            for combination in product(*values.values())
        ]
        self.rng.shuffle(replies)
        # What the barista knows by now, in the words of the house.
        cup, place = self.ordered["cup"], DRINKS.index(self.ordered["drink"])
        acorns = CHEAPEST + place + 2 * CUPS.index(cup) + EXTRAS.index(self.ordered["extra"])
        facts = {"waiter": menu.WAITERS[cup], "place": menu.PLACES[place % len(menu.PLACES)]}
        label = _sentence(sentence, {**self.ordered, **facts, "acorns": str(acorns)})
        return Message(text=text, labels=[label], label_candidates=replies)

    def _say(self, sentences: Sequence[str], **words: str) -> str:
        text = self.rng.choice(sentences).format(**words)
        return text[0].upper() + text[1:]

    def _with_others(self, what: str, n_names: int) -> List[str]:
        """What was ordered, and other names."""
        others = [name for name in NAMES[what] if name != self.ordered[what]]
        return [self.ordered[what], *self.rng.sample(others, n_names - 1)]


def _sentence(sentence: str, words: Dict[str, str]) -> str:
    return re.sub(r"\b([Aa]) (?=Albatross)", r"\1n ", sentence.format(**words))
