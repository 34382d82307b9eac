"""Writes the tokens of a store to disk, as an encoder makes them."""

import sys
from pathlib import Path
from typing import Any, Callable, Optional, Tuple

import numpy as np

from ..examples.batch import Batch
from ..examples.mapped_store import MappedStore
from ..examples.store_cells import BITS, NO_CELL, STRING, TURNS
from ..files.growing_folder import GrowingFolder
from ..messages import SELF
from ..ops.slices import slice_places
from .text_encoder import TextEncoder

# Rows and labels that are tokenized at once.
CHUNK = 1 << 16
_KIND = (1 << BITS) - 1


def write_tokens(
    store: MappedStore,
    encoder: TextEncoder,
    folder: Path,
    fingerprint: Any,
    progress: Optional[Callable[[int], None]] = None,
) -> None:
    """Tokenize the labels of a store, and the turns of all its rows; go on where this was
    stopped.

    folder (Path): Of the tokens.
    fingerprint (Any): Of what they are made of, as JSON.
    progress (Optional[Callable]): Called with the number of rows done so far.
    RAISES (OSError): If it cannot be written.
    """
    files = GrowingFolder(folder, fingerprint)
    try:
        _Tokens(files, store, encoder).write(progress)
    finally:
        files.close()


class _Tokens:
    def __init__(self, files: GrowingFolder, store: MappedStore, encoder: TextEncoder):
        self.files, self.store, self.encoder = files, store, encoder
        self.n_ids = encoder.tokenizer.n_ids
        # Ids alone are enough where all segments of a turn are 0; read as rows they are so on
        # machines where the id comes first.
        self.is_wide = encoder.segments == "line" or sys.byteorder != "little"
        kind = "<i8" if self.is_wide else "<u2" if self.n_ids <= 1 << 16 else "<i4"
        self.bounds, self.turns = files.array("bounds", "<i8"), files.array("turns", "<i4")
        self.entries, self.tokens = files.array("entries", "<i8", 3), files.array("tokens", kind)
        self.state = files.state or {"labels": 0, "rows": 0}
        if not self.bounds.n_rows:
            self.bounds.append([0])

    def write(self, progress: Optional[Callable[[int], None]]) -> None:
        state, texts = self.state, self.store.label_texts
        while state["labels"] < len(texts):
            some = texts[state["labels"] : state["labels"] + CHUNK]
            self._add([(SELF, text) for text in some])
            state["labels"] += len(some)
            self.files.save(state)
        while state["rows"] < self.store.n_rows:
            rows = slice(state["rows"], min(state["rows"] + CHUNK, self.store.n_rows))
            turns, n_turns = self._turns_of(rows)
            self.turns.append(turns)
            self.bounds.append(self.turns.n_rows - n_turns.sum() + n_turns.cumsum())
            state["rows"] = rows.stop
            self.files.save(state)
            if progress is not None:
                progress(rows.stop)
        n_tokens = self.tokens.n_rows
        self.files.end_arrays()
        self.files.finish({"n_ids": self.n_ids, "tokens": n_tokens})

    def _add(self, turns: Any) -> int:
        """Tokenize turns; RETURNS the entry of the first."""
        first, start = self.entries.n_rows, self.tokens.n_rows
        rows, lengths, units = self.encoder.lay_out(turns)
        if not self.is_wide:
            rows = rows.view(np.int32)[::2]
        self.tokens.append(rows)
        self.entries.append(np.stack((start + lengths.cumsum() - lengths, lengths, units), axis=1))
        return first

    def _turns_of(self, rows: slice) -> Tuple[np.ndarray, np.ndarray]:
        """The entries of the turns of some rows, and how many each has; they are added."""
        store, most = self.store, self.encoder.history_size
        codes = store.codes("text", rows)
        before = np.full(len(codes), NO_CELL) if most == 1 else store.codes("context", rows)
        has_context = before != NO_CELL
        if (codes & _KIND != STRING).any() or (before[has_context] & _KIND != TURNS).any():
            return self._by_cells(rows)
        starts = np.zeros(len(codes), dtype=np.int64)
        ends = starts.copy()
        starts[has_context], ends[has_context] = store.lists_of(before[has_context] >> BITS)
        if most > 0:
            starts = np.maximum(starts, ends - (most - 1))
        n_turns = ends - starts + 1
        last = n_turns.cumsum() - 1
        turns = np.empty(int(n_turns.sum()), dtype=np.int64)  # As in the lists: 2 * string + role.
        turns[last] = 2 * (codes >> BITS)
        places = slice_places(last - n_turns + 1, n_turns - 1)
        turns[places] = store.list_values[slice_places(starts, n_turns - 1)]
        if not self.encoder.speaker_tokens:
            turns &= ~1
        different, numbers = np.unique(turns, return_inverse=True)
        first = self._add([(turn & 1, store.string(turn >> 1)) for turn in different.tolist()])
        return first + numbers, n_turns

    def _by_cells(self, rows: slice) -> Tuple[np.ndarray, np.ndarray]:
        """The same, example by example: some lack a text, or have a context of another form."""
        batch = Batch(self.store, np.arange(rows.start, rows.stop))
        of_rows = batch.turns(self.encoder.history_size)
        of_rows = [
            turns[-most:] if (most := self.encoder.history_size) > 0 else turns for turns in of_rows
        ]
        turns = [tuple(turn) for own in of_rows for turn in own]
        numbers = {turn: number for number, turn in enumerate(dict.fromkeys(turns))}
        first = self._add(list(numbers))
        n_turns = np.array(list(map(len, of_rows)), dtype=np.int64)
        return first + np.array([numbers[turn] for turn in turns], dtype=np.int64), n_turns
