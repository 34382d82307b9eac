"""A store of portions, as they come from workers."""

from functools import cached_property
from itertools import accumulate
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from .encoded import Encoded
from .portion import NONE, Column, Lists, Portion, Texts, Tokens
from .slices import slice_places
from .store import NO_LABEL, Store


class PackedStore(Store):
    """Episodes of some portions; texts are made when somebody asks for them.

    portions (Sequence[Portion]): One or more, in their order.
    always (Optional[Dict]): Field to a value that all rows have in common.
    """

    is_held = False

    def __init__(self, portions: Sequence[Portion], always: Optional[Dict[str, Any]] = None):
        self.always = always or {}
        n_rows = [int(portion.starts[-1]) for portion in portions]
        first_rows = list(accumulate(n_rows, initial=0))
        starts = [portion.starts[1:] + first for portion, first in zip(portions, first_rows)]
        self.starts: Any = np.concatenate([[0], *starts])
        self._letters = b"".join(portion.letters.data for portion in portions)
        first_letters = accumulate((len(portion.letters) for portion in portions), initial=0)
        ends = [portion.ends + first for portion, first in zip(portions, first_letters)]
        self._ends = np.concatenate([[0], *ends])
        self._first_texts = list(accumulate((len(portion.ends) for portion in portions), initial=0))
        names = dict.fromkeys(name for portion in portions for name in portion.columns)
        self.names = list({**names, **dict.fromkeys(self.always)})
        self._columns = {
            name: self._joined([portion.columns.get(name) for portion in portions], n_rows)
            for name in names
        }
        self._bounds = {
            name: column.bounds()
            for name, column in self._columns.items()
            if isinstance(column, Lists)
        }
        self._tokens = _joined_tokens([portion.tokens for portion in portions])
        self.encoder_keys = () if self._tokens is None else (self._tokens.key,)

    def _joined(self, columns: List[Optional[Column]], n_rows: List[int]) -> Column:
        """The columns of all portions as one."""
        kinds = {type(column) for column in columns if column is not None}
        first = zip(columns, n_rows, self._first_texts)
        if kinds == {Texts}:
            return Texts(
                np.concatenate(
                    [
                        np.full(n, NONE) if column is None else _moved(column.numbers, by)  # type: ignore
                        for column, n, by in first
                    ]
                )
            )
        lists = [column for column in columns if isinstance(column, Lists)]
        has_speakers = {each.speakers is not None for each in lists if len(each.numbers)}
        if kinds == {Lists} and len(has_speakers) < 2:
            counts = [
                column.counts if isinstance(column, Lists) else np.full(n, NONE)
                for column, n in zip(columns, n_rows)
            ]
            numbers = [
                _moved(column.numbers, by) for column, _, by in first if isinstance(column, Lists)
            ]
            speakers = None
            if has_speakers == {True}:
                speakers = np.concatenate([s.speakers for s in lists if s.speakers is not None])
            return Lists(np.concatenate(counts), np.concatenate(numbers), speakers)
        values: List[Any] = []
        for column, n, by in first:
            if isinstance(column, list):
                values += column
            elif column is None:
                values += [None] * n
            else:
                values += self._made(column, np.arange(n), by)
        return values

    def cells(self, name: str, rows: np.ndarray) -> List[Any]:
        if name in self.always:
            return [self.always[name]] * len(rows)
        column = self._columns.get(name)
        if column is None:
            return [None] * len(rows)
        if isinstance(column, list):
            return [column[row] for row in rows.tolist()]
        return self._made(column, rows, 0, self._bounds.get(name))

    def _made(
        self, column: Column, rows: np.ndarray, by: int, bounds: Optional[np.ndarray] = None
    ) -> List[Any]:
        """Cells of texts, or of lists.

        by (int): What is to be added to the numbers of texts.
        """
        if isinstance(column, Texts):
            return self.texts(_moved(column.numbers[rows], by))
        assert isinstance(column, Lists)
        if bounds is None:
            bounds = column.bounds()
        counts = column.counts[rows]
        lengths = np.maximum(counts, 0)
        ends = lengths.cumsum()
        places = slice_places(bounds[rows], lengths)
        flat: List[Any] = self.texts(_moved(column.numbers[places], by))
        if column.speakers is not None:
            flat = list(zip(column.speakers[places].tolist(), flat))
        return [
            None if count == NONE else flat[end - count : end]
            for count, end in zip(counts.tolist(), ends.tolist())
        ]

    def texts(self, numbers: np.ndarray) -> List[Any]:
        """Texts by their numbers; None for ``NONE``."""
        letters = self._letters
        begins, ends = self._ends[numbers].tolist(), self._ends[numbers + 1].tolist()
        made = [
            letters[begin:end].decode("utf-8", "surrogatepass") for begin, end in zip(begins, ends)
        ]
        if (numbers == NONE).any():
            return [None if n == NONE else text for n, text in zip(numbers.tolist(), made)]
        return made

    @cached_property
    def _label_rows(self) -> Tuple[np.ndarray, np.ndarray, List[bytes]]:
        """Of each row the number of its first label; of each such number the first row, and the
        text in UTF-8."""
        column = self._columns.get("labels")
        ids = np.full(self.n_examples, NO_LABEL)
        if not isinstance(column, Lists):
            return ids, np.zeros(0, dtype=np.int64), []
        has_label = np.flatnonzero(column.counts > 0)
        numbers = column.numbers[self._bounds["labels"][has_label]]
        # The same text has several numbers if it came in several portions.
        different, firsts, places = np.unique(numbers, return_index=True, return_inverse=True)
        order = firsts.argsort()
        begins, ends = self._ends[different[order]].tolist(), self._ends[different[order] + 1]
        letters = self._letters
        known: Dict[bytes, int] = {}
        of_different = np.empty(len(order), dtype=np.int64)
        of_different[order] = [
            known.setdefault(letters[begin:end], len(known))
            for begin, end in zip(begins, ends.tolist())
        ]
        ids[has_label] = of_different[places]
        _, rows = np.unique(ids[has_label], return_index=True)
        return ids, has_label[rows], list(known)

    @cached_property
    def _numbered_labels(self) -> Tuple[np.ndarray, List[str]]:
        if isinstance(self._columns.get("labels"), list):
            return Store._numbered_labels.func(self)  # type: ignore[attr-defined]
        ids, _, texts = self._label_rows
        return ids, [text.decode("utf-8", "surrogatepass") for text in texts]

    @cached_property
    def _label_entries(self) -> np.ndarray:
        """Of each row the entry of its first label: equal labels have one."""
        assert self._tokens is not None
        ids, rows, _ = self._label_rows
        # The last one is of no label.
        return np.append(self._tokens.labels[rows], 0)[ids]

    def encoded(self, key: str, rows: np.ndarray) -> Encoded:
        tokens = self._tokens
        assert tokens is not None
        labels = self._label_entries[rows].astype(np.int64)
        return Encoded(tokens.bounds, tokens.turns, tokens.entries, tokens.tokens, rows, labels)


def _moved(numbers: np.ndarray, by: int) -> np.ndarray:
    return np.where(numbers == NONE, NONE, numbers + by) if by else numbers


def _joined_tokens(parts: Sequence[Optional[Tokens]]) -> Optional[Tokens]:
    """The tokens of several portions as one; None if one has none, or other ones."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({part.key for part in known}) != 1:
        return None
    n_rows, n_turns, n_entries = (
        list(accumulate((len(each) for each in sizes), initial=0))
        for sizes in (
            [part.tokens for part in known],
            [part.turns for part in known],
            [part.entries[0] for part in known],
        )
    )
    entries = np.concatenate([part.entries for part in known], axis=1)
    entries[0] += np.array(n_rows[:-1]).repeat([len(part.entries[0]) for part in known])
    bounds = [part.bounds[1:] + first for part, first in zip(known, n_turns)]
    return Tokens(
        known[0].key,
        np.concatenate([[0], *bounds]),
        np.concatenate([part.turns + first for part, first in zip(known, n_entries)]),
        entries,
        np.concatenate([part.tokens for part in known]),
        np.concatenate([_moved(part.labels, first) for part, first in zip(known, n_entries)]),
    )
