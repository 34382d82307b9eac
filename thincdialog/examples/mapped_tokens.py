"""The tokens of a store on disk, made by one encoder."""

from pathlib import Path
from typing import Any, Dict

import numpy as np

from ..files.flat_array import CHUNK, MappedFolder
from .encoded import Encoded


class MappedTokens:
    """Read the tokens of a store. The first entries are the store's labels, in their order; the
    entries of turns follow.

    folder (Path): Folder of the tokens.
    manifest (Dict[str, Any]): Content of its manifest.
    n_rows, n_labels (int): Number of rows and of labels of the store.
    RAISES (DataError): If a file is missing, truncated, or not an array of tokens.
    """

    def __init__(self, folder: Path, manifest: Dict[str, Any], n_rows: int, n_labels: int):
        self.n_ids = int(manifest["n_ids"])
        files = self._files = MappedFolder(folder)
        self._turns = files.array("turns", "i")
        self._bounds = files.bounds("bounds", len(self._turns))
        self._entries = files.array("entries", "i", 3).T
        self._tokens = files.array("tokens", "iu")
        if len(self._bounds) != n_rows + 1:
            raise files.damaged("bounds", f"{len(self._bounds):,} rows")
        if self._entries.shape[1] < n_labels:
            raise files.damaged("entries", f"{self._entries.shape[1]:,} rows")

    def encoded(self, rows: np.ndarray, label_ids: np.ndarray) -> Encoded:
        """Return the tokens of some rows (see ``Store.encoded``).

        label_ids (np.ndarray): Label ids of all rows of the store.
        """
        labels = label_ids.take(rows).astype(np.int64)
        return Encoded(self._bounds, self._turns, self._entries, self._tokens, rows, labels)

    def check_numbers(self) -> None:
        """Check that every number is in range, because kernels do not check their indices.

        RAISES (DataError): If a number is out of range.
        """
        check, (firsts, lengths, units) = self._files.check, self._entries
        check("bounds", self._bounds, 0, len(self._turns), rise=0)
        check("turns", self._turns, 0, len(firsts) - 1)
        ids = self._tokens
        if ids.dtype.itemsize == 8:  # Each value is an id and a segment.
            ids, segments = ids.view(np.int32).reshape(-1, 2).T
            check("tokens", segments, 0)
        check("tokens", ids, 0, self.n_ids - 1)
        check("entries", firsts, 0, len(self._tokens))
        check("entries", lengths, 1, len(self._tokens))
        check("entries", units, 0)
        for start in range(0, len(firsts), CHUNK):
            some = slice(start, start + CHUNK)
            check("entries", firsts[some] + lengths[some], 0, len(self._tokens))
