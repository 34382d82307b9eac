"""A store in memory, to which episodes are appended."""

from array import array
from functools import cached_property
from itertools import accumulate, chain, islice
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np

from ..messages import PARTNER, SELF, Message
from .encoded import Encoded, Encoding, side_by_side, slice_places, with_equal_labels
from .store import CHUNK, NO_LABEL
from .strings import ChosenStrings, Numbering, Strings
from .table import BITS, NO_CELL, ONE, OTHER, STRINGS, TURNS, Excerpt, Table, by_first_sight

NONE = -1
# Number of episodes to append at a time.
N_AT_ONCE = 256


class MemoryStore(Table):
    """Hold a table in memory, to which episodes are appended before it is read. Equal texts are
    stored once.

    is_held (bool): See ``Store``.
    """

    def __init__(self, is_held: bool = True):
        super().__init__()
        self.starts: Any = array("q", [0])
        self.is_held = is_held
        self._columns: Dict[str, Any] = {}
        self.strings, self._ids, self._has_ids = Strings(), Strings(), False
        self._values, self._list_starts = array("i"), array("q", [0])
        self._others: List[Any] = []
        # Tokens of the pieces that the store was made of, by the keys of their encoders.
        self._pieces: List[Dict[str, Encoded]] = []
        # While the store grows: the numbers of its strings, and the newest rows as they were given.
        self._numbers: Optional[Numbering] = None
        self._given: List[Dict[str, Any]] = []
        self._n_packed = 0
        # Once the store is read: its columns as arrays.
        self._arrays: Optional[Dict[str, np.ndarray]] = None
        self._as_arrays()

    def __getstate__(self) -> Dict[str, Any]:
        self._as_arrays()
        return {**self.__dict__, "_arrays": None, "_given": []}

    # --- growing --------------------------------------------------------------------------

    def append(self, episode: Sequence[Message]) -> None:
        """Append an episode. The store keeps no reference to its messages."""
        self.append_all([list(map(Message, episode))])

    def append_all(self, episodes: Iterable[Sequence[Message]]) -> None:
        """Append episodes. The store refers to their messages until it is read."""
        remaining = iter(episodes)
        while some := list(islice(remaining, N_AT_ONCE)):
            self.starts.extend(islice(accumulate(map(len, some), initial=self.starts[-1]), 1, None))
            self._given += chain.from_iterable(some)
            if len(self._given) >= CHUNK:
                self._pack()

    def extend(self, store: "MemoryStore", episodes: np.ndarray) -> None:
        """Append episodes of another store, with their tokens.

        episodes (np.ndarray): Numbers of the episodes, int64.
        """
        self._pack()
        fields, starts = store.fields, np.asarray(store.starts)
        lengths = starts[episodes + 1] - starts[episodes]
        rows = slice_places(starts[episodes], lengths)
        part = Excerpt(store, fields, rows)
        numbers = self._growing()(store.strings.take(part.strings))
        items = 2 * numbers[part.items >> 1] + (part.items & 1)
        lists = self._add_lists(items, part.lengths)
        others = np.arange(len(part.others)) + len(self._others) << BITS | OTHER
        for name, codes in zip(fields, part.columns(numbers, lists, others)):
            self._column(name).frombytes(codes.tobytes())
        self._others += [store._others[place] for place in part.others.tolist()]
        self._has_ids |= store._has_ids
        self._ids.extend_encoded(store._ids.slices(rows))
        self.starts.frombytes((lengths.cumsum() + self._n_packed).tobytes())
        self._pieces.append({key: store.encoded(key, rows) for key in store.tokens})
        self.__dict__.pop("tokens", None)  # They are joined when they are needed.
        self._pack()

    def fill(self, name: str, value: Any) -> None:
        """Set a field of all rows to the same value."""
        self._pack()
        self._columns[name] = array("q", [self._cell_number(name, value)]) * self._n_packed

    def _growing(self) -> Numbering:
        if self._numbers is None:
            self._arrays = None
            del self.list_values, self.list_starts
            self._numbers = Numbering(self.strings)
        return self._numbers

    def _column(self, name: str) -> Any:
        if name not in self._columns:
            self._columns[name] = array("q", [NO_CELL]) * self._n_packed
        return self._columns[name]

    def _pack(self) -> None:
        """Turn the newest rows into numbers, and add these to the columns."""
        given, self._given = self._given, []
        if given:
            self._growing()
        names = list(dict.fromkeys(chain.from_iterable(given)))
        if "id" in names:
            self._has_ids = True
            names.remove("id")
        self._ids.extend([str(row.get("id", "")) for row in given])
        for name in names:
            codes = self._cell_numbers(name, [row.get(name) for row in given])
            self._column(name).frombytes(codes.tobytes())
        self._n_packed = self.starts[-1]
        for column in self._columns.values():
            column.extend([NO_CELL] * (self._n_packed - len(column)))
        if self._numbers is not None:
            self._numbers.forget_recent()

    def _cell_numbers(self, name: str, values: List[Any]) -> np.ndarray:
        """Return the number of each cell of a field (see ``Table``), for many rows at once;
        int64."""
        numbers, kinds = self._growing(), set(map(type, values))
        if kinds == {str}:
            return numbers(values) << BITS
        if kinds <= {list, type(None)}:
            lengths = np.array([NONE if value is None else len(value) for value in values])
            flat = list(chain.from_iterable(filter(None, values)))
            if (lengths == 1).all() and set(map(type, flat)) == {str}:
                return numbers(flat) << BITS | ONE
            if set(map(type, flat)) == {tuple} and set(map(len, flat)) == {2}:
                speakers, texts = zip(*flat)
                are_turns = set(map(type, texts)) == {str} and set(map(type, speakers)) == {int}
                if are_turns and set(speakers) <= {PARTNER, SELF}:
                    return self._add(2 * numbers(texts) + np.array(speakers), lengths, TURNS)
        # A list object that many rows share is stored once.
        codes = {id(value): value for value in values}
        codes = {key: self._cell_number(name, value) for key, value in codes.items()}
        return np.array([codes[id(value)] for value in values], dtype=np.int64)

    def _cell_number(self, name: str, cell: Any) -> int:
        """Return the number of one cell (see ``Table``)."""
        numbers = self._growing()
        if cell is None:
            return NO_CELL
        if type(cell) is str:
            return numbers([cell]).item() << BITS
        if type(cell) is list and set(map(type, cell)) <= {str}:
            found = numbers(cell)
            if len(found) == 1:
                return found.item() << BITS | ONE
            kind = TURNS if name == "context" and not cell else STRINGS
            return self._add(2 * found, np.array([len(found)]), kind).item()
        self._others.append(cell)
        return len(self._others) - 1 << BITS | OTHER

    def _add(self, values: np.ndarray, lengths: np.ndarray, kind: int) -> np.ndarray:
        """Append lists, and return the numbers of their cells, int64.

        values (np.ndarray): Values of all lists, one list after the other (see
            ``Table.list_values``).
        lengths (np.ndarray): Length of each list; ``NONE`` for a cell without a list.
        kind (int): Kind of the lists.
        """
        is_list = lengths != NONE
        codes = np.full(len(lengths), NO_CELL)
        codes[is_list] = self._add_lists(values, lengths[is_list]) << BITS | kind
        return codes

    def _add_lists(self, values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Append lists, and return their numbers, int64."""
        first = len(self._list_starts) - 1
        self._list_starts.frombytes((len(self._values) + lengths.cumsum()).tobytes())
        self._values.frombytes(values.astype(np.int32).tobytes())
        return np.arange(first, first + len(lengths))

    # --- as a table -----------------------------------------------------------------------

    def _as_arrays(self) -> Dict[str, np.ndarray]:
        if self._given or self._arrays is None:
            self._pack()
            self._numbers = None
            self._arrays = {name: np.asarray(codes) for name, codes in self._columns.items()}
            self.list_values = np.asarray(self._values)
            self.list_starts = np.asarray(self._list_starts)
        return self._arrays

    @property
    def fields(self) -> Sequence[str]:  # type: ignore[override]
        return list(self._as_arrays())

    @property
    def ids(self) -> Optional[Strings]:  # type: ignore[override]
        self._as_arrays()
        return self._ids if self._has_ids else None

    def column(self, name: str) -> Optional[np.ndarray]:
        return self._as_arrays().get(name)

    @property
    def n_strings(self) -> int:
        """Number of distinct strings."""
        return len(self.strings)

    def other(self, number: int, kind: int) -> Any:
        return self._others[number]

    @cached_property
    def _numbered_labels(self) -> Tuple[np.ndarray, Sequence[str]]:
        found = self.first_labels()
        if found is None:
            return super()._numbered_labels
        has_label = found != NO_LABEL
        labels = found[has_label]
        found[has_label], firsts = by_first_sight(labels)
        return found, ChosenStrings(self.strings, labels[firsts])

    # --- tokens ---------------------------------------------------------------------------

    def tokenize(self, encoding: Encoding) -> None:
        """Tokenize all turns and first labels, so that ``encoded`` can return their tokens. Does
        nothing if ``turns`` or ``first_labels`` returns None for the rows."""
        found = self.turns(slice(None), encoding.history_size, encoding.has_speakers)
        labels = self.first_labels()
        if found is None or labels is None or not self.n_examples:
            return
        turns, n_turns = found
        labels = np.where(labels == NO_LABEL, turns[0], 2 * labels + SELF)
        keys = np.concatenate((turns, labels))
        numbers, entries, tokens = self.tokenized(keys, encoding)
        made = Encoded(
            np.append(0, n_turns.cumsum()),
            numbers[: len(turns)].astype(np.int32),
            entries,
            tokens,
            np.arange(len(labels)),
            numbers[len(turns) :],
        )
        self.tokens = {encoding.key: made}
        self._pieces = [self.tokens]

    @cached_property
    def tokens(self) -> Dict[str, Encoded]:  # type: ignore[override]
        """The tokens of all rows, if all pieces were tokenized with the same encoding."""
        keys = set.intersection(*map(set, self._pieces)) if self._pieces else ()
        joined = {key: side_by_side([piece[key] for piece in self._pieces]) for key in keys}
        return {key: with_equal_labels(found, self.label_ids) for key, found in joined.items()}
