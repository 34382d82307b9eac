"""Join several stores, so that each row of a mixture of tasks has its own number."""

from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import numpy as np

from ..messages import Message
from .encoded import Encoded, side_by_side, with_equal_labels
from .store import NO_LABEL, Store


class JoinedStore(Store):
    """Join the rows of several stores, one store after the other.

    parts (Sequence[Store]): The stores to join.
    prefix (str): Prefix to add to all ids.
    first_rows (List[int]): Number of the first row of each store, then the number of all rows.
    """

    def __init__(self, parts: Sequence[Store], prefix: str = ""):
        self.parts, self.prefix = list(parts), prefix
        self.first_rows = list(accumulate((part.n_examples for part in parts), initial=0))
        self.names = list(dict.fromkeys(name for part in parts for name in part.names))
        self.is_held = all(part.is_held for part in parts)
        of_parts = [frozenset(part.encoder_keys) for part in parts]
        self.encoder_keys = frozenset.intersection(*of_parts)

    @cached_property
    def starts(self) -> Sequence[int]:  # type: ignore[override]
        if len(self.parts) == 1:
            return self.parts[0].starts
        if all(part.is_single_turn for part in self.parts):
            return range(self.first_rows[-1] + 1)
        ends = [
            np.asarray(part.starts)[1:] + first for part, first in zip(self.parts, self.first_rows)
        ]
        return [0, *np.concatenate(ends).tolist()]

    @cached_property
    def n_words(self) -> np.ndarray:
        return np.concatenate([part.n_words for part in self.parts])

    def by_part(self, rows: np.ndarray) -> Iterator[Tuple[Store, np.ndarray, np.ndarray]]:
        """Group rows by store: yield each store, the places of its rows among the given rows,
        and their numbers in that store; int64."""
        parts = np.searchsorted(self.first_rows, rows, side="right") - 1
        for number, (part, first) in enumerate(zip(self.parts, self.first_rows)):
            places = np.flatnonzero(parts == number)
            yield part, places, rows[places] - first

    def cells(self, name: str, rows: np.ndarray) -> List[Any]:
        found: List[Any] = [None] * len(rows)
        for part, places, own in self.by_part(rows):
            for place, value in zip(places.tolist(), part.cells(name, own)):
                found[place] = value
        return [f"{self.prefix}{id}" for id in found] if self.prefix and name == "id" else found

    def encoded(self, key: str, rows: np.ndarray) -> Encoded:
        if len(self.parts) == 1:
            return self.parts[0].encoded(key, rows)
        parts = list(self.by_part(rows))
        joined = side_by_side([part.encoded(key, own) for part, _, own in parts])
        order = np.concatenate([places for _, places, _ in parts]).argsort()
        joined = joined._replace(
            conversations=joined.conversations[order], labels=joined.labels[order]
        )
        # Several tasks may share a label.
        return with_equal_labels(joined, self.label_ids[rows])

    def message(self, row: int) -> Message:
        number = bisect_right(self.first_rows, row) - 1
        message = self.parts[number].message(row - self.first_rows[number])
        message["id"] = f"{self.prefix}{message['id']}"
        return message

    @cached_property
    def _numbered_labels(self) -> Tuple[np.ndarray, Sequence[str]]:
        if len(self.parts) == 1:
            return self.parts[0].label_ids, self.parts[0].label_texts
        numbers: Dict[str, int] = {}
        ids = []
        for part in self.parts:
            known = [numbers.setdefault(text, len(numbers)) for text in part.label_texts]
            # Index -1 (no label) selects the appended NO_LABEL.
            ids.append(np.array([*known, NO_LABEL])[part.label_ids])
        return np.concatenate(ids), list(numbers)


class ChosenRows(Store):
    """Show some rows of a store, each as an episode of its own, and number only their labels.

    store (Store): Holds the rows.
    rows (np.ndarray): Numbers of the rows in the store, shape (n,), int64.
    """

    is_held = False

    def __init__(self, store: Store, rows: np.ndarray):
        self.store, self.rows = store, rows
        self.names, self.starts = store.names, range(len(rows) + 1)
        self.encoder_keys = store.encoder_keys

    def cells(self, name: str, rows: np.ndarray) -> List[Any]:
        return self.store.cells(name, self.rows[rows])

    def encoded(self, key: str, rows: np.ndarray) -> Encoded:
        return self.store.encoded(key, self.rows[rows])

    @cached_property
    def _numbered_labels(self) -> Tuple[np.ndarray, Sequence[str]]:
        used, ids = np.unique(self.store.label_ids[self.rows], return_inverse=True)
        if len(used) and used[0] == NO_LABEL:
            used, ids = used[1:], ids - 1
        texts = self.store.label_texts
        return ids, [texts[number] for number in used.tolist()]
