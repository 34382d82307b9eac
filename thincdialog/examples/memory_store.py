"""A store in memory, to which episodes are appended."""

from array import array
from functools import cached_property
from itertools import accumulate, chain, islice
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np

from ..messages import PARTNER, SELF, Message
from .encoded import Encoded, Encoding, Tokens
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
        self._tokens: List[Optional[Tokens]] = []
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
        for part in store._tokens or [None]:
            if part is not None:
                own = numbers[part.keys >> 1] != NONE
                keys = 2 * numbers[part.keys[own] >> 1] + (part.keys[own] & 1)
                part = part._replace(keys=keys, entries=part.entries[:, own])
            self._tokens.append(part)
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

    def label_turns(self, ids: np.ndarray) -> Optional[np.ndarray]:
        """Return labels as turns of the agent, numbered as in ``turns``, int64; None if the labels
        of some row are not a list of strings.

        ids (np.ndarray): Numbers of the labels in ``label_texts``.
        """
        texts = self.label_texts
        return 2 * texts.numbers[ids] + SELF if isinstance(texts, ChosenStrings) else None

    # --- tokens ---------------------------------------------------------------------------

    def tokenize(self, encoding: Encoding) -> None:
        """Tokenize all turns and first labels, so that ``encoded`` can return their tokens. Does
        nothing if ``turns`` or ``first_labels`` returns None for the rows."""
        found = self._keys(encoding.history_size, encoding.has_speakers)
        if found is not None and self.n_examples:
            turns, _, labels = found
            keys = _distinct(np.concatenate((turns, labels[labels >= 0])))
            texts = self.strings.take(keys >> 1)
            rows, lengths, units = encoding.lay_out(list(zip((keys & 1).tolist(), texts)))
            entries = np.stack((lengths.cumsum() - lengths, lengths, units))
            self._tokens = [Tokens(encoding.key, *encoding[2:], keys, entries, rows)]

    def _keys(self, history_size: int, has_speakers: bool) -> Any:
        turns, labels = self.turns(slice(None), history_size, has_speakers), self.first_labels()
        return None if turns is None or labels is None else (*turns, 2 * labels + 1)

    @cached_property
    def _ready(self) -> Optional[Encoded]:
        """The tokens of all rows; None unless all rows were tokenized with the same encoding."""
        parts = [part for part in self._tokens if part is not None]
        if not parts or len(parts) < len(self._tokens) or len({part.key for part in parts}) > 1:
            return None
        found = self._keys(parts[0].history_size, parts[0].has_speakers)
        if found is None:
            return None
        turns, n_turns, labels = found
        keys, places = np.unique(np.concatenate([part.keys for part in parts]), return_index=True)
        first_rows = accumulate((len(part.rows) for part in parts), initial=0)
        entries = [part.entries + [[first], [0], [0]] for part, first in zip(parts, first_rows)]
        return Encoded(
            np.append(0, n_turns.cumsum()),
            np.searchsorted(keys, turns).astype(np.int32),
            np.concatenate(entries, axis=1)[:, places],
            np.concatenate([part.rows for part in parts]),
            np.arange(len(labels)),
            np.searchsorted(keys, labels),
        )

    @property
    def encoder_keys(self) -> Sequence[str]:  # type: ignore[override]
        return [part.key for part in self._tokens[:1] if part and self._ready]

    def encoded(self, key: str, rows: np.ndarray) -> Encoded:
        assert self._ready is not None
        return self._ready._replace(conversations=rows, labels=self._ready.labels[rows])


def _distinct(numbers: np.ndarray) -> np.ndarray:
    """Return the distinct values of non-negative numbers, ascending. Takes memory in proportion to
    the largest number."""
    is_there = np.zeros(numbers.max(initial=NONE) + 1, dtype=bool)
    is_there[numbers] = True
    return np.flatnonzero(is_there)
