"""Episodes held as columns: one list for each field, not one dict for each message."""

import gc
from array import array
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Dict, Iterator, List, Literal, Sequence, Tuple

from ..messages import Message

# Distinct lists of labels that are looked out for again.
MAX_KNOWN_LISTS = 4096

# A field as a message shows it: its name, and its value for every turn of the store.
Field = Tuple[str, List[Any]]

# What shares of tasks are counted in.
Unit = Literal["episodes", "examples", "words"]


@contextmanager
def collection_paused() -> Iterator[None]:
    """Leave Python's search for unreachable objects alone meanwhile: millions are made and
    none is garbage, but looking for it takes half of the time of reading."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class EpisodeStore:
    """Grows by episodes; hands out turns by their number.

    columns (Dict[str, List]): Field name to one value for each turn; None where a
        turn lacks the field. Labels stand under `labels`.
    starts (array): Number of each episode's first turn, and of all turns at the end.
    is_sparse (bool): Whether some turn lacks a field that another has.
    """

    def __init__(self) -> None:
        self.columns: Dict[str, List[Any]] = {}
        self.starts = array("q", [0])
        self.is_sparse = False
        # Equal lists of labels (classes, say) are held once.
        self._known_lists: Dict[Tuple[str, ...], List[str]] = {}
        self._words = array("q", [0])

    @property
    def n_episodes(self) -> int:
        """Number of episodes."""
        return len(self.starts) - 1

    @property
    def n_turns(self) -> int:
        """Number of turns, that is, of examples."""
        return self.starts[-1]

    def append(self, episode: Sequence[Message]) -> None:
        """Take in one episode; its messages are not kept."""
        columns = self.columns
        n_turns = self.starts[-1]
        for message in episode:
            for name, value in message.items():
                if name == "labels":
                    value = self._shared(value)
                column = columns.get(name)
                if column is None:
                    column = columns[name] = [None] * n_turns
                    self.is_sparse |= n_turns > 0
                column.append(value)
            n_turns += 1
            if len(message) < len(columns):
                self.is_sparse = True
                for column in columns.values():
                    if len(column) < n_turns:
                        column.append(None)
        self.starts.append(n_turns)

    def _shared(self, values: List[str]) -> List[str]:
        known = self._known_lists
        key = tuple(values)
        if len(known) < MAX_KNOWN_LISTS:
            return known.setdefault(key, values)
        return known.get(key, values)

    def fields(self, label_name: str) -> List[Field]:
        """The columns as messages show them.

        label_name (str): `labels` or `eval_labels`.
        """
        return [
            (label_name if name == "labels" else name, column)
            for name, column in self.columns.items()
        ]

    def message(self, turn: int, fields: Sequence[Field]) -> Message:
        """One turn as a message.

        turn (int): Its number in the store.
        fields (Sequence[Field]): What to show of it, from ``fields``.
        """
        if self.is_sparse:
            cells = ((name, values[turn]) for name, values in fields)
            return Message((name, value) for name, value in cells if value is not None)
        return Message([(name, values[turn]) for name, values in fields])

    def all_labels(self, episodes: Sequence[int], fields: Sequence[Field]) -> Iterator[str]:
        """Every label of some episodes: what ``Message.all_labels`` is of their turns.

        episodes (Sequence[int]): Their numbers.
        fields (Sequence[Field]): What messages show, from ``fields``.
        """
        named = [field for field in fields if field[0] in ("labels", "eval_labels")]
        for episode in episodes:
            turns = slice(self.starts[episode], self.starts[episode + 1])
            if len(named) == 1:
                for labels in named[0][1][turns]:
                    yield from labels or ()
            else:
                for turn in range(turns.start, turns.stop):
                    yield from self.message(turn, named).all_labels

    def replies(self) -> Iterator[str]:
        """The first label of every turn that has one."""
        return (labels[0] for labels in self.columns.get("labels", ()) if labels)

    def bounds(self, unit: Unit) -> Sequence[int]:
        """Where each episode begins, counted in a unit, and where the last one ends: an
        episode's size is the difference of two neighbours.

        unit (Unit): Words are those between white space of all texts and labels, for
            each turn at least 1; what stands in `context` was said before.
        """
        if unit == "examples":
            return self.starts
        if unit == "episodes":
            return range(self.n_episodes + 1)
        if len(self._words) != len(self.starts):
            nothing = [None] * self.n_turns
            texts = self.columns.get("text", nothing)
            labels = self.columns.get("labels", nothing)
            words = [max(1, n_words(*turn)) for turn in zip(texts, labels)]
            upto = list(accumulate(words, initial=0))
            self._words = array("q", [upto[start] for start in self.starts])
        return self._words


def n_words(text: Any, labels: Any) -> int:
    """Words of one turn, its labels among them."""
    n_said = len(text.split()) if text else 0
    return n_said + sum(len(label.split()) for label in labels or ())
