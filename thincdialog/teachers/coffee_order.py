"""A dialogue task that needs no download: guests order in a cafe with its own names for drinks,
cups and toppings."""

import random
from functools import lru_cache, partial
from itertools import chain, product
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import srsly

from ..errors import ConfigError, Problem
from ..messages import Episode, Message
from ..registry import registry
from .teacher import Teacher

# Sentences and words of guests and barista. Drinks, temperatures, cups, extras and greetings map
# the barista's words to the guests' words. Drinks and cups are in the order of their prices; the
# default extra and temperature are first.
MENU: Dict[str, Any] = srsly.read_json(Path(__file__).with_name("coffee_menu.json"))
N_CANDIDATES = 20
DRINKS, TEMPERATURES = list(MENU["drinks"]), list(MENU["temperatures"])
CUPS, EXTRAS = list(MENU["cups"]), list(MENU["extras"])
# Euros: 2.00 for the cheapest drink, 20 cents more for the next ones and for a topping, 60 cents
# more for the next cups.
PRICES = [f"{2 + 0.2 * step:.2f}" for step in range(N_CANDIDATES)]
# The possible values of each placeholder in a reply.
VALUES = {
    "greeting": list(MENU["greetings"]),
    "drink": DRINKS,
    "temperature": TEMPERATURES,
    "cup": CUPS,
    "extra": EXTRAS,
    "waiter": list(MENU["waiters"].values()),
    "place": MENU["places"],
    "price": PRICES,
}
SMALL_TALK = ("greet", "why", "thanks", "bye")

# A larger number is a typing error.
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
    """Generate dialogues of 4 to 8 turns from a seed: guests greet, order, change their minds, pay
    and say goodbye; the barista answers.

    Each turn has 20 candidates. In an order, they are the same sentence with other drinks, cups,
    toppings, people or prices; in small talk, they are other replies. Guests and barista use
    different words, later turns change earlier choices, and most replies depend on earlier turns:
    the price depends on the drink, the topping and the cup as changed. So neither shared words
    nor the most similar known dialogue give the reply, but a small network learns it in seconds.

    n_train (int): Number of dialogues to train on, 1 or more.
    n_dev (int): Number of dialogues of the split `dev`, 1 or more.
    n_test (int): Number of dialogues of the split `test`, 1 or more.
    seed (int): Seed of the generator; another seed gives other dialogues.
    mutators (Optional[Union[List, Dict]]): Mutators to apply in order, each in a section
        `[tasks.x.mutators.name]`.
    streaming (bool): Generate the dialogues again for every epoch instead of keeping them.
    RAISES (ConfigError): If a split has no dialogue, or more than 10 million.
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
    """Generate dialogues of guests with the barista; the same seed gives the same dialogues.

    n_dialogues (int): Number of dialogues.
    seed (str): Seed of the generator.
    """
    rng = random.Random(seed)
    for _ in range(n_dialogues):
        yield CoffeeDialogue(rng).turns()


class CoffeeDialogue:
    """Generate the dialogue of one guest, and hold the order so far.

    rng (random.Random): Draws the guest's choices and all sentences.
    """

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.drink, self.cup = rng.choice(DRINKS), rng.choice(CUPS)
        self.extra, self.temperature = rng.choice(EXTRAS), rng.choice(TEMPERATURES)
        self.greets = rng.random() < 0.5

    def turns(self) -> Episode:
        """Return the turns of the dialogue: perhaps a greeting; the drink; the cup and topping; one
        or two of (another cup, another temperature, the place to wait, the reason for the names)
        in any order; the bill; perhaps thanks and a goodbye."""
        draw = self.rng.random
        why: Callable[[], Message] = partial(self._chat, "why")
        middle = self.rng.sample((self._resize, self._reheat, self._where, why), 2)
        steps = [self._greet] if self.greets else []
        steps += [self._order, self._size, *middle[draw() < 0.5 :], self._pay]
        steps += [partial(self._chat, "thanks")] if draw() < 0.5 else []
        steps += [partial(self._chat, "bye")] if draw() < 0.6 else []
        return [step() for step in steps]

    def _greet(self) -> Message:
        greeting, text = self._greeting()
        return self._small_talk(text, "greet", greeting=greeting)

    def _greeting(self) -> Tuple[str, str]:
        """Return the barista's greeting and the guest's greeting."""
        greeting = self.rng.choice(VALUES["greeting"])
        return greeting, self.rng.choice(MENU["greetings"][greeting])

    def _order(self) -> Message:
        drink = self.rng.choice(MENU["drinks"][self.drink])
        served = f", {self.rng.choice(MENU['temperatures'][self.temperature])}"
        if self.temperature == TEMPERATURES[0] and self.rng.random() < 0.5:
            served = ""
        stay = self.rng.choice(MENU["stays"])
        text = self._sentence(MENU["orders"], drink=drink, served=served, stay=stay)
        if not self.greets and self.rng.random() < 0.5:
            text = f"{self._greeting()[1]} {text}"
        return self._order_talk(text, "order", temperature=TEMPERATURES, drink=DRINKS)

    def _size(self) -> Message:
        size = self.rng.choice(MENU["cups"][self.cup])
        if self.extra == EXTRAS[0] and self.rng.random() < 0.5:
            text = self._sentence(MENU["sizes_alone"], size=size)
        else:
            extra = self.rng.choice(MENU["extras"][self.extra])
            text = self._sentence(MENU["sizes"], size=size, extra=extra)
        drinks, cups = self._neighbours(DRINKS, self.drink, 2), self._neighbours(CUPS, self.cup, 2)
        return self._order_talk(text, "size", drink=drinks, cup=cups, extra=EXTRAS)

    def _resize(self) -> Message:
        old = CUPS.index(self.cup)
        new = self.rng.choice([cup for cup in (old - 1, old + 1) if 0 <= cup < len(CUPS)])
        self.cup = CUPS[new]
        sentences = MENU["bigger"] if new > old else MENU["smaller"]
        return self._change(self._sentence(sentences), [CUPS[old], CUPS[new]])

    def _reheat(self) -> Message:
        self.temperature = TEMPERATURES[1 - TEMPERATURES.index(self.temperature)]
        served = self.rng.choice(MENU["temperatures"][self.temperature])
        text = self._sentence(MENU["other_way"], served=served)
        return self._change(text, self._neighbours(CUPS, self.cup, 2))

    def _change(self, text: str, cups: List[str]) -> Message:
        drinks = self._neighbours(DRINKS, self.drink, 5)
        return self._order_talk(text, "change", temperature=TEMPERATURES, drink=drinks, cup=cups)

    def _where(self) -> Message:
        text = self._sentence(MENU["where"])
        return self._order_talk(text, "where", waiter=VALUES["waiter"], place=MENU["places"])

    def _chat(self, kind: str) -> Message:
        return self._small_talk(self._sentence(MENU[kind]), kind)

    def _pay(self) -> Message:
        return self._order_talk(self._sentence(MENU["pay"]), "pay", price=PRICES)

    def _order_talk(self, text: str, kind: str, **values: List[str]) -> Message:
        """Return a turn about the order, whose candidates are one sentence with all combinations of
        some values."""
        sentence, place = self.rng.choice(MENU["replies"][kind]), DRINKS.index(self.drink)
        right = {
            "drink": self.drink,
            "temperature": self.temperature,
            "cup": self.cup,
            "extra": self.extra,
            "waiter": MENU["waiters"][self.cup],
            "place": MENU["places"][place % len(MENU["places"])],
            "price": PRICES[place + 3 * CUPS.index(self.cup) + (self.extra != EXTRAS[0])],
        }
        label = _filled(sentence, *((name, right[name]) for name in values))
        return self._turn(text, label, _all_filled(sentence, values))

    def _small_talk(self, text: str, kind: str, **right: str) -> Message:
        """Return a turn of small talk. Only one of its candidates fits the guest's text."""
        sentence = self.rng.choice(MENU["replies"][kind])
        candidates = _all_filled(sentence, {name: VALUES[name] for name in right})
        others = (_replies(other) for other in SMALL_TALK if other != kind)
        candidates += map(self.rng.choice, others)
        n_missing = N_CANDIDATES - len(candidates)
        first = self.rng.randrange(len(_serving_replies()) - n_missing)
        candidates += _serving_replies()[first : first + n_missing]
        return self._turn(text, _filled(sentence, *right.items()), candidates)

    def _turn(self, text: str, label: str, candidates: List[str]) -> Message:
        # A rotation puts the label anywhere, and takes a fifth of the time of a shuffle.
        first = self.rng.randrange(N_CANDIDATES)
        return Message(
            text=text, labels=[label], label_candidates=candidates[first:] + candidates[:first]
        )

    def _sentence(self, sentences: Sequence[str], **words: str) -> str:
        text = self.rng.choice(sentences).format(**words)
        return text[0].upper() + text[1:]

    def _neighbours(self, names: List[str], own: str, n_names: int) -> List[str]:
        """Return neighbours in a list of names, with the guest's own choice among them."""
        first = names.index(own) - self.rng.randrange(n_names)
        return [names[(first + place) % len(names)] for place in range(n_names)]


@lru_cache(maxsize=None)
def _filled(sentence: str, *words: Any) -> str:
    """Fill the placeholders of a sentence with words. The results are cached, because there are
    few different ones."""
    return sentence.format(**dict(words))


def _all_filled(sentence: str, values: Dict[str, List[str]]) -> List[str]:
    names = list(values)
    return [_filled(sentence, *zip(names, words)) for words in product(*values.values())]


@lru_cache(maxsize=None)
def _replies(kind: str) -> List[str]:
    """Return all replies of a kind."""
    found = []
    for sentence in MENU["replies"][kind]:
        used = {name: each for name, each in VALUES.items() if f"{{{name}}}" in sentence}
        found += _all_filled(sentence, used)
    return found


@lru_cache(maxsize=None)
def _serving_replies() -> List[str]:
    """Return all replies that are not small talk, in a fixed random order."""
    kinds = (kind for kind in MENU["replies"] if kind not in SMALL_TALK)
    found = list(chain.from_iterable(map(_replies, kinds)))
    random.Random(0).shuffle(found)
    return found
