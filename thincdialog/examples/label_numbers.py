"""Numbers the labels of a whole store, in memory that does not grow with it."""

from pathlib import Path

import numpy as np

from ..files.flat_array import GrowingArray
from .store import NO_LABEL

# Keys that are compared at once, and rows that are read at once.
_PART, _CHUNK = 1 << 21, 1 << 20


def number_labels(folder: Path) -> int:
    """Give equal labels of different shards one number, in the order of first sight.

    ``shard_keys`` holds a hash of each shard's labels, ``shard_labels`` their strings and
    ``shard_ids`` of each row the number among them. What comes out is ``labels``, of each
    label its string, and ``label_ids``, of each row its label.

    folder (Path): Of the store that is built.
    RETURNS (int): How many different labels there are.
    """
    keys = np.load(folder / "shard_keys.npy", mmap_mode="r").view(np.ndarray)
    n = len(keys)
    firsts_path, numbers_path = folder / "shard_firsts.npy", folder / "shard_numbers.npy"
    if not n:
        firsts = numbers = np.zeros(0, dtype=np.int64)
    else:
        firsts = np.lib.format.open_memmap(firsts_path, "w+", "<i8", (n,)).view(np.ndarray)
        numbers = np.lib.format.open_memmap(numbers_path, "w+", "<i8", (n,)).view(np.ndarray)
    n_parts = -(-n // _PART)
    for part in range(n_parts):
        _find_firsts(keys, part, n_parts, firsts)
    labels = GrowingArray(folder / "labels.npy", "<i8")
    strings = np.load(folder / "shard_labels.npy", mmap_mode="r").view(np.ndarray)
    for start in range(0, n, _CHUNK):
        places = np.arange(start, min(start + _CHUNK, n))
        new = places[firsts[places] == places]
        numbers[new] = labels.n_rows + np.arange(len(new))
        labels.append(strings[new])
    of_rows = np.load(folder / "shard_ids.npy", mmap_mode="r").view(np.ndarray)
    kind = "<i4" if labels.n_rows < 1 << 31 else "<i8"
    label_ids = GrowingArray(folder / "label_ids.npy", kind)
    for start in range(0, len(of_rows), _CHUNK):
        ids = of_rows[start : start + _CHUNK]
        found = np.full(len(ids), NO_LABEL)
        has_label = ids != NO_LABEL
        found[has_label] = numbers[firsts[ids[has_label]]]
        label_ids.append(found)
    labels.finish()
    label_ids.finish()
    del firsts, numbers
    firsts_path.unlink(missing_ok=True)
    numbers_path.unlink(missing_ok=True)
    return labels.n_rows


def _find_firsts(keys: np.ndarray, part: int, n_parts: int, firsts: np.ndarray) -> None:
    """Of each key of a part (those with some remainder), the place where it comes first.

    keys (np.ndarray): Hashes, shape (n, 2), uint64.
    firsts (np.ndarray): Shape (n,), int64; written.
    """
    found = [
        start + np.flatnonzero(keys[start : start + _CHUNK, 0] % n_parts == part)
        for start in range(0, len(keys), _CHUNK)
    ]
    places = np.concatenate(found)
    of_part = np.ascontiguousarray(keys[places]).view([("high", "<u8"), ("low", "<u8")]).ravel()
    _, first, which = np.unique(of_part, return_index=True, return_inverse=True)
    firsts[places] = places[first[which]]
