"""Episodes held in memory: one list for each field, not one dict for each message."""

import gc
from array import array
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import numpy as np

from ..messages import Message
from .store import Store

# Distinct lists of labels that are looked out for again.
MAX_KNOWN_LISTS = 4096


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


class MemoryStore(Store):
    """Grows by episodes until somebody looks at it.

    columns (Dict[str, List]): Field name to one value a row; None where a row lacks it.
    is_held (bool): See ``Store``.
    """

    def __init__(self, is_held: bool = True):
        self.columns: Dict[str, List[Any]] = {}
        self.starts: Any = array("q", [0])
        self.is_held = is_held
        # Equal lists of labels (classes, say) are held once.
        self._known_lists: Dict[Tuple[str, ...], List[str]] = {}

    @classmethod
    def of_columns(cls, columns: Dict[str, List[Any]], n_rows: int) -> "MemoryStore":
        """A passing store of single rows.

        columns (Dict[str, List]): Field name to one value a row; taken over.
        n_rows (int): Number of rows.
        """
        store = cls(is_held=False)
        store.columns, store.starts = columns, array("q", range(n_rows + 1))
        return store

    @property
    def names(self) -> Sequence[str]:  # type: ignore[override]
        return list(self.columns)

    def append(self, episode: Sequence[Message]) -> None:
        """Take in one episode; its messages are not kept."""
        columns = self.columns
        n_rows = self.starts[-1]
        for message in episode:
            for name, value in message.items():
                if name == "labels":
                    value = self._shared(value)
                column = columns.get(name)
                if column is None:
                    column = columns[name] = [None] * n_rows
                column.append(value)
            n_rows += 1
            if len(message) < len(columns):
                for column in columns.values():
                    if len(column) < n_rows:
                        column.append(None)
        self.starts.append(n_rows)

    def _shared(self, values: List[str]) -> List[str]:
        known = self._known_lists
        key = tuple(values)
        if len(known) < MAX_KNOWN_LISTS:
            return known.setdefault(key, values)
        return known.get(key, values)

    def cells(self, name: str, rows: np.ndarray) -> List[Any]:
        values = self.columns.get(name)
        if values is None:
            return [None] * len(rows)
        if len(rows) < 2:
            return [values[row] for row in rows]
        # Half the time of a loop.
        return list(itemgetter(*rows.tolist())(values))

    def all_cells(self, name: str) -> Iterator[Any]:
        return iter(self.columns.get(name) or [None] * self.n_examples)

    def message(self, row: int) -> Message:
        cells = ((name, values[row]) for name, values in self.columns.items())
        return Message((name, value) for name, value in cells if value is not None)
