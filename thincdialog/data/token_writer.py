"""Tokenize the rows and labels of a store, and write the tokens to disk."""

import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Callable, Generator, Iterable, List, NamedTuple, Optional, Tuple

import numpy as np

from ..examples.batch import Batch
from ..examples.encoded import Encoding
from ..examples.mapped_store import MappedStore
from ..files.shard_folder import ShardFolder, read_manifest
from ..messages import SELF, Turn
from .text_encoder import TextEncoder

# Carries out tasks and yields their results, in their order (see ``Readers.carry_out``). Its
# further arguments are a function that returns the function that carries out a task, and a
# description of the work, for messages.
CarryOut = Callable[[Iterable[Any], Any, str], Generator[Any, None, None]]
# Number of rows or labels to tokenize at a time.
CHUNK = 1 << 14


class StoreSpan(NamedTuple):
    """Hold the range of some consecutive labels or rows of a store.

    what (str): "labels" or "rows".
    first, last (int): Number of the first label or row, and one past the last.
    """

    what: str
    first: int
    last: int


class Tokenized(NamedTuple):
    """Hold the tokens of some labels or rows.

    span (StoreSpan): The labels or rows.
    turns (np.ndarray): For rows, each turn's number among the distinct turns, int64.
    n_turns (np.ndarray): For rows, the number of turns of each row, int64.
    tokens (np.ndarray): Tokens of the labels, or of the distinct turns, in the type on disk.
    entries (np.ndarray): For each label or distinct turn, the start of its tokens, their number,
        and its units; shape (n, 3), int64.
    """

    span: StoreSpan
    turns: np.ndarray
    n_turns: np.ndarray
    tokens: np.ndarray
    entries: np.ndarray


def write_tokens(
    store: MappedStore,
    encoder: TextEncoder,
    folder: Path,
    fingerprint: Any,
    carry_out: CarryOut,
    progress: Optional[Callable[[int], None]] = None,
) -> None:
    """Tokenize the labels of a store and the turns of all its rows, and write the tokens to a
    folder. If an earlier call was interrupted, resume its work.

    folder (Path): Folder to write the tokens to.
    fingerprint (Any): Fingerprint of the store and the encoder, as JSON.
    carry_out (CarryOut): Tokenizes, possibly in other processes; this process writes.
    progress (Optional[Callable]): Called with the number of rows done so far.
    RAISES (OSError): If the tokens cannot be written.
    """
    encoding, n_ids = encoder.encoding, encoder.tokenizer.n_ids
    assert encoding is not None
    # Ids alone are enough if all segments of a turn are 0: read as token rows, they then have
    # segment 0 on machines where the id comes first (little-endian).
    is_wide = encoder.segments == "line" or sys.byteorder != "little"
    kind = "<i8" if is_wide else "<u2" if n_ids <= 1 << 16 else "<i4"
    with closing(ShardFolder(folder, fingerprint)) as files:
        sizes = {"labels": len(store.label_texts), "rows": store.n_rows}
        spans = [
            StoreSpan(what, first, min(first + CHUNK, size))
            for what, size in sizes.items()
            for first in range(0, size, CHUNK)
        ]
        make_work = partial(_tokenizing, store.folder, encoding, kind)
        what = f"tokenizes {store.folder.parent}"
        with closing(carry_out(spans[files.n_shards :], make_work, what)) as all_made:
            for made in all_made:
                n = files.n_rows
                shard = {
                    "turns": (n["entries"] + made.turns).astype("<i4"),
                    "bounds": files.ends("bounds", made.n_turns, "turns"),
                    "entries": made.entries + np.array([n["tokens"], 0, 0]),
                    "tokens": made.tokens,
                }
                files.add(shard)
                if progress is not None and made.span.what == "rows":
                    progress(made.span.last)
        files.finish({"n_ids": n_ids, "tokens": files.n_rows["tokens"]}, {})


def _tokenizing(folder: Path, encoding: Encoding, kind: str) -> Callable[[StoreSpan], Tokenized]:
    """Return a function that tokenizes a span of the store in a folder."""
    store = MappedStore(folder, read_manifest(folder) or {})
    return partial(_tokenize, store, encoding, np.dtype(kind))


def _tokenize(
    store: MappedStore, encoding: Encoding, kind: "np.dtype[Any]", span: StoreSpan
) -> Tokenized:
    numbers = n_turns = np.zeros(0, dtype=np.int64)
    if span.what == "rows":
        different, numbers, n_turns = _turns_of(store, encoding, np.arange(span.first, span.last))
    else:
        different = [(SELF, text) for text in store.label_texts[span.first : span.last]]
    rows, lengths, units = encoding.lay_out(different)
    if kind.itemsize < 8:
        rows = rows.view(np.int32)[::2]
    entries = np.stack((lengths.cumsum() - lengths, lengths, units), axis=1)
    return Tokenized(span, numbers, n_turns, rows.astype(kind), entries)


def _turns_of(
    store: MappedStore, encoding: Encoding, rows: np.ndarray
) -> Tuple[List[Turn], np.ndarray, np.ndarray]:
    """Return the distinct turns of some rows, the number of each turn among these, and the number
    of turns of each row."""
    found = store.turns(rows, encoding.history_size, encoding.has_speakers)
    if found is None:
        return _by_cells(store, encoding.history_size, rows)
    keys, numbers = np.unique(found[0], return_inverse=True)
    return list(zip((keys & 1).tolist(), store.strings.take(keys >> 1))), numbers, found[1]


def _by_cells(
    store: MappedStore, most: int, rows: np.ndarray
) -> Tuple[List[Turn], np.ndarray, np.ndarray]:
    """Do the same row by row, because some rows lack a text, or have a context that is not a list
    of turns."""
    of_rows = [turns[-most:] if most > 0 else turns for turns in Batch(store, rows).turns(most)]
    turns = [(role, text) for own in of_rows for role, text in own]
    numbers = {turn: number for number, turn in enumerate(dict.fromkeys(turns))}
    n_turns = np.array(list(map(len, of_rows)), dtype=np.int64)
    return list(numbers), np.array([numbers[turn] for turn in turns], dtype=np.int64), n_turns
