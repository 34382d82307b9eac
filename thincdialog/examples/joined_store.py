"""Several stores as one, so that rows of a mixture of tasks have one number each."""

from functools import cached_property
from itertools import accumulate
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from .store import NO_LABEL, Store


class JoinedStore(Store):
    """The rows of some stores, those of one behind those of the other.

    parts (Sequence[Store]): The stores.
    prefixes (Sequence[str]): What the ids of each begin with.
    first_rows (np.ndarray): Number of the first row of each, and of all rows; int64.
    """

    def __init__(self, parts: Sequence[Store], prefixes: Sequence[str]):
        self.parts, self.prefixes = list(parts), list(prefixes)
        counts = accumulate((part.n_examples for part in parts), initial=0)
        self.first_rows = np.array(list(counts), dtype=np.int64)
        self.names = list(dict.fromkeys(name for part in parts for name in part.names))
        self.is_held = all(part.is_held for part in parts)

    @cached_property
    def starts(self) -> Sequence[int]:  # type: ignore[override]
        own = [np.asarray(part.starts)[:-1] for part in self.parts]
        moved = [starts + first for starts, first in zip(own, self.first_rows)]
        return np.concatenate([*moved, self.first_rows[-1:]]).tolist()

    def tasks_of(self, rows: np.ndarray) -> np.ndarray:
        """Number of the store that each row is of; int64."""
        return np.searchsorted(self.first_rows, rows, side="right") - 1

    def cells(self, name: str, rows: np.ndarray) -> List[Any]:
        found: List[Any] = [None] * len(rows)
        tasks = self.tasks_of(rows)
        for task, part in enumerate(self.parts):
            places = np.flatnonzero(tasks == task)
            values = part.cells(name, rows[places] - self.first_rows[task])
            if name == "id":
                values = [f"{self.prefixes[task]}{value}" for value in values]
            for place, value in zip(places.tolist(), values):
                found[place] = value
        return found

    @cached_property
    def _numbered_labels(self) -> Tuple[np.ndarray, List[str]]:
        numbers: Dict[str, int] = {}
        ids = []
        for part in self.parts:
            known = [numbers.setdefault(text, len(numbers)) for text in part.label_texts]
            # The last one is that of no label.
            ids.append(np.array([*known, NO_LABEL])[part.label_ids])
        return np.concatenate(ids), list(numbers)
