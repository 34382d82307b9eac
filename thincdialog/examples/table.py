"""Episodes as a table of integers: one cell for each field of each example, in memory or on disk.

The number of a cell is ``8 * n + kind``, or -1 if the example lacks the field. The kind determines
whether n is the number of a string, of a list of strings, of a list of turns, or of another value.
"""

from typing import Any, Collection, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ..messages import SELF, Message, Turn
from .encoded import Encoded, Encoding, slice_places
from .store import NO_LABEL, Store
from .strings import ChosenStrings, Strings

# Kinds of cells: a string; a list of one string; a list of strings; a list of turns; any other
# value, in memory. An item of a list is 2 * n, or 2 * n + 1 for a turn of the agent, where n is the
# number of its string.
STRING, ONE, STRINGS, TURNS, OTHER = range(5)
# Kinds of other values on disk, each saved as a string: an array; a list of floats, as an array;
# JSON.
ARRAY, FLOATS, JSON = range(OTHER, OTHER + 3)
BITS = 3
KIND = (1 << BITS) - 1
NO_CELL = -1
# Number of lists to cache after reading, because other examples may share them.
_N_LISTS = 64


class Table(Store):
    """Hold the cells of each field as a column of numbers, and each distinct string once. Ids are
    stored separately, because each id occurs only once.

    fields (Sequence[str]): Names of the fields, except the id.
    ids (Optional[Strings]): The id of each row; None if the rows have no ids.
    strings (Strings): The distinct strings.
    list_values (np.ndarray): Items of all lists, one list after the other.
    list_starts (np.ndarray): Start of each list in ``list_values``, and the end of the last list.
    tokens (Dict[str, Encoded]): For each key of an encoder, the tokens of all rows.
    """

    fields: Sequence[str]
    ids: Optional[Strings]
    strings: Strings
    list_values: np.ndarray
    list_starts: np.ndarray
    tokens: Dict[str, Encoded]

    def __init__(self) -> None:
        self._known_lists: Dict[int, List[str]] = {}

    @property
    def names(self) -> Sequence[str]:  # type: ignore[override]
        return self.fields if self.ids is None else ["id", *self.fields]

    @property
    def encoder_keys(self) -> Collection[str]:  # type: ignore[override]
        return list(self.tokens)

    def encoded(self, key: str, rows: np.ndarray) -> Encoded:
        found = self.tokens[key]
        labels = found.labels.take(rows).astype(np.int64, copy=False)
        return Encoded(*found[:4], rows, labels)

    def column(self, name: str) -> Optional[np.ndarray]:
        """Return the numbers of all cells of a field other than the id; None if no row has it."""
        raise NotImplementedError

    def other(self, number: int, kind: int) -> Any:
        """Return the value of a cell that is not a string, a list of strings or a list of turns.

        number, kind (int): The number n of the cell, and its kind.
        """
        raise NotImplementedError

    def cells(self, name: str, rows: np.ndarray) -> List[Any]:
        if name == "id" and self.ids is not None:
            return self.ids.take(rows)
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
        message = Message() if self.ids is None else Message(id=self.ids[row])
        for name in self.fields:
            cell = self._cell(self.column(name).item(row))  # type: ignore[union-attr]
            if cell is not None:
                message[name] = cell
        return message

    def _cell(self, code: int) -> Any:
        if code == NO_CELL:
            return None
        number, kind = code >> BITS, code & KIND
        if kind <= ONE:
            return [self.strings[number]] if kind else self.strings[number]
        return self._list(number, kind) if kind < OTHER else self.other(number, kind)

    def _list(self, number: int, kind: int) -> List[Any]:
        # On disk, equal lists are stored once, even if one of them is a list of turns.
        known = None if kind == TURNS else self._known_lists.get(number)
        if known is not None:
            return known
        starts = self.list_starts
        values = self.list_values[starts.item(number) : starts.item(number + 1)]
        found = self.strings.take(values >> 1)
        if kind == TURNS:
            return list(zip((values & 1).tolist(), found))
        if len(self._known_lists) >= _N_LISTS:
            self._known_lists.clear()
        self._known_lists[number] = found
        return found

    def first_labels(self) -> Optional[np.ndarray]:
        """Return the number of the string of each row's first label, ``NO_LABEL`` for a row
        without labels; None if the labels of some row are not a list of strings."""
        column = self.column("labels")
        if column is None:
            return np.full(self.n_examples, NO_LABEL)
        kinds, numbers = column & KIND, column >> BITS
        is_list = kinds == STRINGS
        if not (is_list | (kinds == ONE) | (column == NO_CELL)).all():
            return None
        lists = numbers[is_list]
        firsts, ends = self.list_starts[lists], self.list_starts[lists + 1]
        items = np.append(self.list_values, NO_LABEL)[np.where(firsts < ends, firsts, -1)]
        numbers[is_list] = items >> 1
        return numbers

    def turns(
        self, rows: Any, history_size: int, has_speakers: bool
    ) -> Optional[Tuple[np.ndarray, np.ndarray]]:
        """Return the turns of some rows, the text of a row as its last turn.

        rows (Any): Numbers of the rows, or a slice.
        history_size (int): Maximum number of turns of a row, including its text; -1 for all.
        has_speakers (bool): Whether the speaker of a turn matters. If not, all turns are numbered
            as turns of the agent.
        RETURNS (Optional[Tuple[np.ndarray, np.ndarray]]): The turns of all rows, each as twice the
            number of its string, plus 1 for a turn of the agent; and the number of turns of each
            row; int64. A row without a text has the empty string as its text, with the number -1.
            None if a row has a context that is not a list of turns.
        """
        texts, contexts = self.column("text"), self.column("context")
        codes = (np.full(self.n_examples, NO_CELL) if texts is None else texts)[rows]
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
        if ((codes & KIND != STRING) & (codes != NO_CELL)).any():
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

    def label_turns(self, ids: np.ndarray) -> Optional[np.ndarray]:
        """Return labels as turns of the agent, numbered as in ``turns``, int64; None if the labels
        of some row are not a list of strings.

        ids (np.ndarray): Numbers of the labels in ``label_texts``.
        """
        texts = self.label_texts
        return 2 * texts.numbers[ids] + SELF if isinstance(texts, ChosenStrings) else None

    def as_turns(self, numbers: np.ndarray) -> List[Turn]:
        """Return turns by their numbers (see ``turns``), which are distinct and ascending."""
        texts = self.strings.take(numbers[numbers >= 0] >> 1)
        return list(zip((numbers & 1).tolist(), [""] * (len(numbers) - len(texts)) + texts))

    def tokenized(
        self, turns: np.ndarray, encoding: Encoding
    ) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tokenize turns (see ``turns``), equal ones once.

        RETURNS (Tuple[np.ndarray, np.ndarray, np.ndarray]): The entry of each turn; and the entries
            and the token rows, as in ``Encoded``.
        """
        distinct, numbers = np.unique(turns, return_inverse=True)
        rows, lengths, units = encoding.lay_out(self.as_turns(distinct))
        return numbers, np.stack((lengths.cumsum() - lengths, lengths, units)), rows


class Excerpt:
    """Number the distinct cells of some rows of a table, and the strings that they use, from 0 in
    the order in which they first occur, field by field.

    table (Table): The table.
    fields (Sequence[str]): Names of the fields.
    rows (np.ndarray): Numbers of the rows, int64.

    strings, others (np.ndarray): For each string and each other value, its number in the table.
    items (np.ndarray): Items of all lists, one list after the other, with the numbers of strings.
    lengths (np.ndarray): Length of each list.
    firsts (np.ndarray): For each other value, the place of its first cell: the number of the field,
        times the number of rows, plus the number of the row.
    """

    def __init__(self, table: Table, fields: Sequence[str], rows: np.ndarray):
        missing = np.full(len(rows), NO_CELL)
        columns = (table.column(name) for name in fields)
        codes = [missing if column is None else column[rows] for column in columns]
        cells = np.array(codes, dtype=np.int64).ravel()
        places, firsts = by_first_sight(cells)
        self._places = places.reshape(len(fields), len(rows))
        kinds, numbers = cells[firsts] & KIND, cells[firsts] >> BITS
        self._kinds, self._is_text = kinds, kinds <= ONE
        self._is_list, is_other = (kinds == STRINGS) | (kinds == TURNS), kinds == OTHER
        self.others, self.firsts = numbers[is_other], firsts[is_other]
        lists = numbers[self._is_list]
        self.lengths = table.list_starts[lists + 1] - table.list_starts[lists]
        n_strings = self._is_text.astype(np.int64)
        n_strings[self._is_list] = self.lengths
        items, in_list = (2 * numbers).repeat(n_strings), self._is_list.repeat(n_strings)
        items[in_list] = table.list_values[slice_places(table.list_starts[lists], self.lengths)]
        strings, firsts = by_first_sight(items >> 1)
        self.strings = items[firsts] >> 1
        self._texts = strings[~in_list]
        self.items = 2 * strings[in_list].astype(np.int64) + (items[in_list] & 1)

    def columns(self, strings: np.ndarray, lists: np.ndarray, others: Any) -> np.ndarray:
        """Return the numbers of all cells in another table, shape (n_fields, n_rows), int64.

        strings, lists (np.ndarray): Number of each string and of each list in the other table.
        others (Any): Number of the cell of each other value in the other table.
        """
        kinds, codes = self._kinds, np.full(len(self._kinds), NO_CELL)
        codes[self._is_text] = strings[self._texts] << BITS | kinds[self._is_text]
        codes[self._is_list] = lists << BITS | kinds[self._is_list]
        codes[kinds == OTHER] = others
        return codes[self._places]


def by_first_sight(keys: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Number distinct keys in the order in which they first occur.

    keys (np.ndarray): Keys, shape (n,), int64 or uint64.
    RETURNS (Tuple[np.ndarray, np.ndarray]): The number of each key, shape (n,), int32; and for
        each number the place where its key first occurs, int64.
    """
    _, firsts, places = np.unique(keys, return_index=True, return_inverse=True)
    order = firsts.argsort()
    numbers = np.empty(len(order), dtype=np.int32)
    numbers[order] = np.arange(len(order))
    return numbers[places], firsts[order]
