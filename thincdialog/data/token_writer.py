"""Tokenize the rows and labels of a store, and write the tokens to disk."""

import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Generator, Iterable, Optional, Tuple

import numpy as np

from ..errors import DataError
from ..examples.encoded import Encoding
from ..examples.mapped_store import MappedStore
from ..files.shard_folder import ShardFolder, read_manifest
from .text_encoder import TextEncoder

# Carries out tasks and yields their results, in their order (see ``Readers.carry_out``). Its
# further arguments are a function that returns the function that carries out a task, and a
# description of the work, for messages.
CarryOut = Callable[[Iterable[Any], Any, str], Generator[Any, None, None]]
# Number of rows or labels to tokenize at a time.
CHUNK = 1 << 14


# Range of labels or rows of a store: "labels" or "rows", the first one, and one past the last.
StoreSpan = Tuple[str, int, int]


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
            (what, first, min(first + CHUNK, size))
            for what, size in sizes.items()
            for first in range(0, size, CHUNK)
        ][len(files.paths) :]
        make_work = partial(_tokenizing, store.folder, encoding, kind)
        with closing(carry_out(spans, make_work, f"tokenizes {store.folder.parent}")) as all_made:
            for (what, _, last), made in zip(spans, all_made):
                made["turns"] += files.n_rows["entries"]
                made["bounds"] = files.ends("bounds", made["bounds"], "turns")
                made["entries"] += (files.n_rows["tokens"], 0, 0)
                files.add(made)
                if progress is not None and what == "rows":
                    progress(last)
        files.finish({"tokens": files.n_rows["tokens"]}, {})


def _tokenizing(
    folder: Path, encoding: Encoding, kind: str
) -> Callable[[StoreSpan], Dict[str, np.ndarray]]:
    """Return a function that tokenizes a span of the store in a folder."""
    return partial(_tokenize, MappedStore(folder, read_manifest(folder) or {}), encoding, kind)


def _tokenize(
    store: MappedStore, encoding: Encoding, kind: str, span: StoreSpan
) -> Dict[str, np.ndarray]:
    """Return the arrays of a shard, with the number of turns of each row in place of their bounds.
    All numbers begin with 0."""
    what, first, last = span
    found: Any
    if what == "labels":
        found = store.label_turns(np.arange(first, last)), np.zeros(0, dtype=np.int64)
    else:
        found = store.turns(slice(first, last), encoding.history_size, encoding.has_speakers)
    if found is None:
        raise DataError(store.folder, "has a 'context' that is not a list of turns")
    turns, n_turns = found
    numbers, entries, rows = store.tokenized(turns, encoding)
    if what == "labels":  # The entry of a label has the label's number.
        numbers, entries = numbers[:0], entries[:, numbers]
    tokens = rows.view(np.int32)[::2] if kind != "<i8" else rows
    made = {"turns": numbers.astype("<i4"), "bounds": n_turns, "entries": entries.T}
    return {**made, "tokens": tokens.astype(kind)}
