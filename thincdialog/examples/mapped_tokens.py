"""The tokens of a store on disk, as one encoder made them."""

from pathlib import Path
from typing import Any, Dict

import numpy as np

from ..files.flat_array import MappedFolder, damaged
from .encoded import Encoded

# Number of values that are checked at once.
_CHUNK = 1 << 22


class MappedTokens:
    """Read the tokens of a store. The first entries are the store's labels, in their order; turns
    follow.

    folder (Path): Folder of the tokens.
    manifest (Dict[str, Any]): Content of its manifest.
    n_rows, n_labels (int): Number of rows and of labels of the store.
    RAISES (DataError): If a file is missing, truncated, or not an array of tokens.
    """

    def __init__(self, folder: Path, manifest: Dict[str, Any], n_rows: int, n_labels: int):
        self.folder, self.n_ids = folder, int(manifest["n_ids"])
        files = MappedFolder(folder)
        self._bounds, self._turns = files.array("bounds", "i"), files.array("turns", "i")
        self._entries = files.array("entries", "i", 3).T
        self._tokens = files.array("tokens", "iu")
        if len(self._bounds) != n_rows + 1:
            raise damaged(folder / "bounds.npy", f"{len(self._bounds):,} rows")
        if self._entries.shape[1] < n_labels:
            raise damaged(folder / "entries.npy", f"{self._entries.shape[1]:,} rows")

    def encoded(self, rows: np.ndarray, label_ids: np.ndarray) -> Encoded:
        """See ``Store.encoded``.

        label_ids (np.ndarray): Label ids of all rows of the store.
        """
        labels = label_ids.take(rows).astype(np.int64)
        return Encoded(self._bounds, self._turns, self._entries, self._tokens, rows, labels)

    def check_numbers(self) -> None:
        """Check that every number is in range, because kernels do not check their indices.

        RAISES (DataError): If a number is out of range.
        """
        (n_entries,), n_tokens = self._entries.shape[1:], len(self._tokens)
        self._check("bounds", self._bounds, 0, len(self._turns), rises=True)
        self._check("turns", self._turns, 0, n_entries - 1)
        is_wide = self._tokens.dtype.itemsize == 8
        self._check("tokens", self._tokens, 0, None if is_wide else self.n_ids - 1)
        for start in range(0, n_entries, _CHUNK):
            firsts, lengths, units = self._entries[:, start : start + _CHUNK]
            if (
                min(firsts.min(), lengths.min() - 1, units.min()) < 0
                or (firsts > n_tokens - lengths).any()
            ):
                raise damaged(self.folder / "entries.npy", "a number out of range")

    def _check(
        self, name: str, values: np.ndarray, least: int, most: Any, rises: bool = False
    ) -> None:
        for start in range(0, len(values), _CHUNK):
            some = values[start : start + _CHUNK + rises]
            if most is None:  # Each value is an id and a segment.
                fields = np.ascontiguousarray(some).view(np.int32).reshape(-1, 2)
                is_good = fields.min() >= 0 and fields[:, 0].max() < self.n_ids
            else:
                is_good = some.min() >= least and some.max() <= most
            if not is_good or (rises and (np.diff(some) < 0).any()):
                raise damaged(self.folder / f"{name}.npy", "a number out of range")
