"""The contract of stores, which hold episodes that never change, field by field."""

import gc
import zlib
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Collection, Dict, Iterator, List, Literal, Sequence, Tuple

import numpy as np

from ..contract import Contract, Returned, is_kind
from ..messages import Message
from .encoded import Encoded

# Unit of the sizes of episodes.
Unit = Literal["episodes", "examples", "words"]
# Number of rows to read at a time when all rows are read.
CHUNK = 4096
# Number of rows that ``sample_checksum`` covers.
N_COMPARED = 16
NO_LABEL = -1


def _are_cells(cells: Any, name: str = "", rows: Any = None, *rest: Any) -> bool:
    if not hasattr(cells, "__getitem__") or isinstance(cells, (str, bytes, dict)):
        return False
    if rows is not None and len(cells) != len(rows):
        return False
    nothing = type(None)  # Every row has an id.
    known: Any = {"text": (str, nothing), "id": str, "labels": (list, tuple, nothing)}
    return name not in known or all(isinstance(cell, known[name]) for cell in cells)


def _are_starts(starts: Any) -> bool:
    found = np.asarray(starts)
    is_good = found.ndim == 1 and found.dtype.kind in "iu" and len(found) > 0
    return is_good and found[0] == 0 and bool((np.diff(found.astype(np.int64)) > 0).all())


class Store(Contract):
    """Hold episodes of one or more examples. An example is a row. Rows are numbered consecutively
    across all episodes, and the content of a row never changes, so an agent may cache its own data
    about a row by number.

    A subclass provides ``names``, ``starts`` and ``cells``, from memory, a file or any other
    source. ``Teacher`` accepts a store instead of a function that reads episodes.

    names (Sequence[str]): Names of the fields that any row has. Labels are in the field `labels`.
    starts (Sequence[int]): Number of the first row of each episode, followed by the number of
        rows.
    is_held (bool): Whether the store is in memory for the whole run, so that agents may cache data
        about its rows.
    encoder_keys (Collection[str]): Keys of the encoders whose tokens the store has.
    """

    returns = {
        "cells": Returned(
            "one value for each row: text and id are strings, labels lists of strings", _are_cells
        )
    }
    has = {
        "names": Returned("the names of the fields", is_kind(list, tuple)),
        "starts": Returned(
            "the first row of each episode, in ascending order from 0, and then the number of rows",
            _are_starts,
        ),
    }
    names: Sequence[str]
    starts: Sequence[int]
    is_held: bool = True
    encoder_keys: Collection[str] = ()

    def cells(self, name: str, rows: np.ndarray) -> List[Any]:
        """Return the values of a field in some rows; None for a row without the field. A `text` is
        a string, `labels` are a list of strings, and an `id` is a string that no other row has.

        name (str): Name of any field, including fields that no row has.
        rows (np.ndarray): Numbers of the rows, shape (n_rows,), int64.
        """
        raise NotImplementedError

    def encoded(self, key: str, rows: np.ndarray) -> Encoded:
        """Return the tokens of some rows, which were made in advance.

        key (str): One of ``encoder_keys``.
        rows (np.ndarray): Numbers of the rows, shape (n_rows,), int64.
        """
        raise NotImplementedError

    def message(self, row: int) -> Message:
        """Return a row as a message, without `episode_done`."""
        place = np.array([row])
        cells = ((name, self.cells(name, place)[0]) for name in self.names)
        return Message((name, value) for name, value in cells if value is not None)

    @property
    def n_episodes(self) -> int:
        """Number of episodes."""
        return len(self.starts) - 1

    @property
    def n_examples(self) -> int:
        """Number of rows."""
        return int(self.starts[-1])

    @property
    def is_single_turn(self) -> bool:
        """Whether every episode has one row. Then an episode and its row have the same number."""
        return self.n_examples == self.n_episodes

    def all_cells(self, name: str) -> Iterator[Any]:
        """Yield the values of a field in all rows, in order; None for a row without the field."""
        for start in range(0, self.n_examples, CHUNK):
            yield from self.cells(name, np.arange(start, min(start + CHUNK, self.n_examples)))

    @cached_property
    def _numbered_labels(self) -> Tuple[np.ndarray, Sequence[str]]:
        numbers: Dict[str, int] = {}
        ids = [
            numbers.setdefault(labels[0], len(numbers)) if labels else NO_LABEL
            for labels in self.all_cells("labels")
        ]
        return np.array(ids, dtype=np.int64), list(numbers)

    @cached_property
    def label_ids(self) -> np.ndarray:
        """Number of each row's first label in ``label_texts``; ``NO_LABEL`` if it has no label.
        Shape (n_examples,), int64."""
        return self._numbered_labels[0]

    @cached_property
    def label_texts(self) -> Sequence[str]:
        """The distinct first labels of all rows."""
        return self._numbered_labels[1]

    @cached_property
    def n_words(self) -> np.ndarray:
        """Length of each row: the number of words (separated by white space) of its text and its
        labels, at least 1. Its `context` is not counted. Shape (n_examples,), int64."""
        turns = zip(self.all_cells("text"), self.all_cells("labels"))
        counts = (
            len((text or "").split()) + sum(len(label.split()) for label in labels or ())
            for text, labels in turns
        )
        return np.maximum(np.fromiter(counts, dtype=np.int64), 1)

    def sizes(self, unit: Unit) -> Sequence[int]:
        """Return the start of each episode, counted in a unit, followed by the end of the last
        episode. The size of an episode is its end minus its start.

        unit (Unit): Unit to count; "words" are counted as in ``n_words``.
        """
        if unit == "examples":
            return self.starts
        return range(self.n_episodes + 1) if unit == "episodes" else self._word_bounds

    @cached_property
    def sample_checksum(self) -> int:
        """Checksum (CRC-32) of the id, text and labels of some evenly spaced rows, to recognize
        other data of the same size."""
        rows = np.linspace(0, self.n_examples - 1, N_COMPARED).astype(np.int64)
        rows = rows[: self.n_examples]
        cells = [self.cells(name, rows) for name in ("id", "text", "labels")]
        return zlib.crc32(repr(cells).encode("utf-8", "surrogatepass"))

    @cached_property
    def _word_bounds(self) -> Any:
        bounds = np.zeros(self.n_examples + 1, dtype=np.int64)
        np.cumsum(self.n_words, out=bounds[1:])
        return bounds if self.is_single_turn else bounds[np.asarray(self.starts)]


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause Python's cyclic garbage collector while the context is active. Reading creates
    millions of objects that are not garbage, and half of its time would go into collections."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Rows(Store):
    """Hold single-turn rows for a short time, without copying their values.

    columns (Dict[str, List]): Field name to one value per row; None for a row without the field.
    n_rows (int): Number of rows.
    """

    is_held = False

    def __init__(self, columns: Dict[str, List[Any]], n_rows: int):
        self.columns, self.names, self.starts = columns, list(columns), range(n_rows + 1)

    def cells(self, name: str, rows: np.ndarray) -> List[Any]:
        values = self.columns.get(name)
        return [values[row] if values else None for row in rows.tolist()]
