"""A store in memory, to which episodes are appended."""

from array import array
from functools import cached_property
from itertools import accumulate, chain, islice
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np

from ..messages import PARTNER, SELF, Message
from .encoded import Encoded, Encoding, side_by_side, with_equal_labels
from .first_sight import by_first_sight
from .numbering import Numbering
from .slices import slice_places
from .store import CHUNK, NO_LABEL, Store
from .strings import ChosenStrings, Strings
from .table import BITS, KIND, NO_CELL, ONE, OTHER, STRING, STRINGS, TURNS, Table

NONE = -1
# Number of episodes to append at a time.
N_AT_ONCE = 256
# A further kind of cell: an id. Ids are kept apart from other strings, because each occurs once.
ID = OTHER + 1


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
        self.strings = Strings()
        self._values, self._list_starts = array("i"), array("q", [0])
        self._others: List[Any] = []
        self._ids = Strings()
        # Tokens of the pieces that the store was made of, by the keys of their encoders.
        self._pieces: List[Dict[str, Encoded]] = []
        # While the store grows: the numbers of its strings, and the newest rows as they were given.
        self._numbers: Optional[Numbering] = None
        self._given: List[Dict[str, Any]] = []
        self._n_packed = 0
        # Once the store is read: its columns as arrays.
        self._settled: Optional[Dict[str, np.ndarray]] = None
        self._settle()

    def __getstate__(self) -> Dict[str, Any]:
        self._settle()
        return {**self.__dict__, "_settled": None, "_given": []}

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

    def extend(self, store: "MemoryStore", first: int, last: int) -> None:
        """Append episodes of another store, with their tokens.

        first, last (int): Number of the first episode, and one past the last episode.
        """
        self._pack()
        begin, end = store.starts[first], store.starts[last]
        names = store.names
        columns = [store.column(name)[begin:end] for name in names]  # type: ignore[index]
        codes = np.array(columns, dtype=np.int64)
        kinds, places = codes & KIND, codes >> BITS
        # Copy only the lists, strings and other values that these rows use.
        lists = _distinct(places[(kinds == STRINGS) | (kinds == TURNS)])
        lengths = np.diff(store.list_starts)[lists]
        values = store.list_values[slice_places(store.list_starts[lists], lengths)]
        strings = _distinct(np.concatenate((places[kinds <= ONE], values >> 1)))
        others, ids = _distinct(places[kinds == OTHER]), places[kinds == ID]
        # The ids of consecutive rows have consecutive numbers.
        first_id, last_id = (ids.min(), ids.max() + 1) if len(ids) else (0, 0)
        numbers = np.full(store.n_strings + 1, NONE)  # One more, so that index 0 always exists.
        numbers[strings] = self._growing()(store.strings.take(strings))
        texts, n_lists = numbers[places * (kinds <= ONE)], len(self._list_starts) - 1
        moved = np.choose(
            kinds,
            [texts, texts, *[lists.searchsorted(places) + n_lists] * 2]
            + [others.searchsorted(places) + len(self._others)]
            + [places - first_id + len(self._ids)] * 3,  # No cell has kind 6 or 7.
        )
        for name, column in zip(names, np.where(codes == NO_CELL, NO_CELL, moved << BITS | kinds)):
            self._column(name).frombytes(column.tobytes())
        self._list_starts.frombytes((lengths.cumsum() + len(self._values)).tobytes())
        values = numbers[values >> 1] << 1 | values & 1
        self._values.frombytes(values.astype(np.int32).tobytes())
        self._others += [store._others[place] for place in others.tolist()]
        self._ids.extend_from(store._ids, first_id, last_id)
        starts = np.asarray(store.starts)[first + 1 : last + 1]
        self.starts.frombytes((starts - begin + self._n_packed).tobytes())
        rows = np.arange(begin, end)
        self._pieces.append({key: store.encoded(key, rows) for key in store.tokens})
        self.__dict__.pop("tokens", None)  # They are joined when they are needed.
        self._pack()

    def fill(self, name: str, value: Any) -> None:
        """Set a field of all rows to the same value."""
        self._pack()
        self._columns[name] = array("q", [self._code(name, value)]) * self._n_packed

    def _growing(self) -> Numbering:
        if self._numbers is None:
            self._settled = None
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
        for name in dict.fromkeys(chain.from_iterable(given)):
            codes = self._coded(name, [row.get(name) for row in given])
            self._column(name).frombytes(codes.tobytes())
        self._n_packed = self.starts[-1]
        for column in self._columns.values():
            column.extend([NO_CELL] * (self._n_packed - len(column)))
        if self._numbers is not None:
            self._numbers.forget_recent()

    def _coded(self, name: str, values: List[Any]) -> np.ndarray:
        numbers, kinds = self._growing(), set(map(type, values))
        if name == "id" and kinds == {str}:
            self._ids.extend(values)
            return np.arange(len(self._ids) - len(values), len(self._ids)) << BITS | ID
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
        codes = {key: self._code(name, value) for key, value in codes.items()}
        return np.array([codes[id(value)] for value in values], dtype=np.int64)

    def _code(self, name: str, cell: Any) -> int:
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
        ends = len(self._values) + lengths[is_list].cumsum()
        codes = np.full(len(lengths), NO_CELL)
        codes[is_list] = np.arange(len(ends)) + len(self._list_starts) - 1 << BITS | kind
        self._values.frombytes(values.astype(np.int32).tobytes())
        self._list_starts.frombytes(ends.tobytes())
        return codes

    # --- as a table -----------------------------------------------------------------------

    def _settle(self) -> Dict[str, np.ndarray]:
        if self._given or self._settled is None:
            self._pack()
            self._numbers = None
            self._settled = {name: np.asarray(codes) for name, codes in self._columns.items()}
            self.list_values = np.asarray(self._values)
            self.list_starts = np.asarray(self._list_starts)
        return self._settled

    @property
    def names(self) -> Sequence[str]:  # type: ignore[override]
        return list(self._settle())

    def column(self, name: str) -> Optional[np.ndarray]:
        return self._settle().get(name)

    def cells(self, name: str, rows: np.ndarray) -> List[Any]:
        ids = self.column("id") if name == "id" else None
        if ids is not None and (ids[rows] & KIND == ID).all():
            return self._ids.take(ids[rows] >> BITS)
        return super().cells(name, rows)

    def encoded_string(self, number: int, kind: int = STRING) -> bytes:
        """Return a string in UTF-8; an id if ``kind`` is ``ID``."""
        return (self._ids if kind == ID else self.strings).encoded(number)

    @property
    def n_strings(self) -> int:
        """Number of distinct strings."""
        return len(self.strings)

    def other(self, number: int, kind: int) -> Any:
        return self._ids[number] if kind == ID else self._others[number]

    @cached_property
    def _numbered_labels(self) -> Tuple[np.ndarray, Sequence[str]]:
        found = self.first_labels()
        if found is None:
            return Store._numbered_labels.func(self)  # type: ignore[attr-defined]
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


def _distinct(numbers: np.ndarray) -> np.ndarray:
    """Return the distinct values of non-negative numbers, ascending. Takes memory in proportion to
    the largest number."""
    is_there = np.zeros(numbers.max(initial=NONE) + 1, dtype=bool)
    is_there[numbers] = True
    return np.flatnonzero(is_there)
