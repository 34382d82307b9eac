"""Episodes as whole numbers: of each field of each example one, in memory as on disk.

A cell's number is ``8 * n + kind``, or -1 where an example lacks the field. What n is the number
of says the kind: of a string, of a list of strings, of a list of turns, of any other value.
"""

from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from ..messages import Message
from .slices import slice_places
from .store import NO_LABEL, Store
from .strings import Strings

# A string; a list that holds one string; a list of strings; of turns, each written as 2 * n +
# (0 for the partner's, 1 for an agent's own), n the number of its string; any other value, in
# memory.
STRING, ONE, STRINGS, TURNS, OTHER = range(5)
# Other values on disk: an array; a list of floats, saved as an array; JSON, saved as a string.
ARRAY, FLOATS, JSON = range(OTHER, OTHER + 3)
BITS = 3
KIND = (1 << BITS) - 1
NO_CELL = -1
# Lists that are kept once read, as other examples may have the same.
_N_LISTS = 64


class Table(Store):
    """Columns of numbers, and each different string once.

    strings (Strings): All strings.
    list_values (np.ndarray): Numbers of the strings, or turns, of all lists.
    list_starts (np.ndarray): Where each list begins there, and where the last one ends.
    """

    strings: Strings
    list_values: np.ndarray
    list_starts: np.ndarray

    def __init__(self) -> None:
        self._known_lists: Dict[int, List[str]] = {}

    def column(self, name: str) -> Optional[np.ndarray]:
        """The numbers of all cells of a field; None if no row has it."""
        raise NotImplementedError

    def other(self, number: int, kind: int) -> Any:
        """A value of a further kind."""
        raise NotImplementedError

    def list_bounds(self, number: int) -> Tuple[int, int]:
        """Where a list begins in ``list_values``, and where it ends."""
        return self.list_starts.item(number), self.list_starts.item(number + 1)

    def cells(self, name: str, rows: np.ndarray) -> List[Any]:
        column = self.column(name)
        if column is None:
            return [None] * len(rows)
        codes = column[rows]
        kinds = codes & KIND
        if not kinds.any():
            return self.strings.take(codes >> BITS)
        if (kinds == ONE).all():
            return [[string] for string in self.strings.take(codes >> BITS)]
        return list(map(self._cell, codes.tolist()))

    def message(self, row: int) -> Message:
        cells = ((name, self._cell(self.column(name).item(row))) for name in self.names)  # type: ignore[union-attr]
        return Message((name, cell) for name, cell in cells if cell is not None)

    def _cell(self, code: int) -> Any:
        if code == NO_CELL:
            return None
        number, kind = code >> BITS, code & KIND
        if kind <= ONE:
            return [self.strings[number]] if kind else self.strings[number]
        return self._list(number, kind) if kind < OTHER else self.other(number, kind)

    def _list(self, number: int, kind: int) -> List[Any]:
        known = self._known_lists.get(number)
        if known is not None:
            return known
        begin, end = self.list_bounds(number)
        values = self.list_values[begin:end].tolist()
        if kind == TURNS:
            return [(value & 1, self.strings[value >> 1]) for value in values]
        found = [self.strings[value] for value in values]
        if len(self._known_lists) >= _N_LISTS:
            self._known_lists.clear()
        self._known_lists[number] = found
        return found

    def first_labels(self) -> Optional[np.ndarray]:
        """The number of each row's first label, ``NO_LABEL`` where it has none; None if labels have
        another form than lists of strings."""
        column = self.column("labels")
        if column is None:
            return np.full(self.n_examples, NO_LABEL)
        kinds, numbers = column & KIND, column >> BITS
        is_list = kinds == STRINGS
        if not (is_list | (kinds == ONE) | (column == NO_CELL)).all():
            return None
        lists = numbers[is_list]
        firsts, ends = self.list_starts[lists], self.list_starts[lists + 1]
        numbers[is_list] = np.append(self.list_values, NO_LABEL)[
            np.where(firsts < ends, firsts, -1)
        ]
        return numbers

    def turns(
        self, rows: Any, history_size: int, has_speakers: bool
    ) -> Optional[Tuple[np.ndarray, np.ndarray]]:
        """The turns of some rows, each as twice the number of its text, plus 1 if an agent's own
        (of any if it does not matter who speaks); and how many each row has; int64.

        rows (Any): A slice, or their numbers.
        history_size (int): Turns of a row at most, its text counted; -1 for all.
        RETURNS: None if a row lacks a text, or has a context of another form.
        """
        texts, contexts = self.column("text"), self.column("context")
        codes = np.full(1, NO_CELL) if texts is None else texts[rows]
        starts = np.zeros(len(codes), dtype=np.int64)
        ends = starts.copy()
        if contexts is not None and history_size != 1:
            before = contexts[rows]
            has_context = before != NO_CELL
            lists = before[has_context]
            if (lists & KIND != TURNS).any():
                return None
            starts[has_context] = self.list_starts[lists >> BITS]
            ends[has_context] = self.list_starts[(lists >> BITS) + 1]
        if (codes & KIND != STRING).any():
            return None
        if history_size > 0:
            starts = np.maximum(starts, ends - (history_size - 1))
        n_turns = ends - starts + 1
        last = n_turns.cumsum() - 1
        turns = np.empty(int(n_turns.sum()), dtype=np.int64)
        turns[last] = codes >> BITS << 1
        places = slice_places(last - n_turns + 1, n_turns - 1)
        turns[places] = self.list_values[slice_places(starts, n_turns - 1)]
        if not has_speakers:
            turns |= 1
        return turns, n_turns
