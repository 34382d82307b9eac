"""Rows of tables, gathered and added up, that run compiled."""

from typing import Any

import numpy

from .compiled import INT32, UINT64, are_plain, load_kernels


class CompiledTables:
    """Part of ``DialogFastOps``: what embedding layers are made of. (``bags`` has more.)"""

    def gather_add(self, table: Any, indices: Any) -> Any:
        if not (are_plain(table, ndim=2) and are_plain(indices, dtype=INT32, ndim=2)):
            return super().gather_add(table, indices)  # type: ignore[misc]
        Y = numpy.zeros((indices.shape[0], table.shape[1]), dtype="f")
        if not load_kernels("tables").gather_add(table, indices, Y):
            raise beyond(table)
        return Y

    def scatter_add(self, table: Any, indices: Any, values: Any) -> Any:
        if not (
            are_plain(table, values, ndim=2)
            and are_plain(indices, dtype=INT32, ndim=1)
            and values.shape == (indices.shape[0], table.shape[1])
        ):
            return super().scatter_add(table, indices, values)  # type: ignore[misc]
        if not load_kernels("tables").scatter_add(table, indices, values):
            raise beyond(table)
        return None

    def hash(self, ids: Any, seed: int) -> Any:
        if not are_plain(ids, dtype=UINT64, ndim=1):
            return super().hash(ids, seed)  # type: ignore[misc]
        keys = numpy.empty((ids.shape[0], 4), dtype="u4")
        load_kernels("tables").hash_ids(ids, int(seed) & 0xFFFFFFFF, keys)
        return keys

    def ngrams(self, n: int, keys: Any) -> Any:
        if not are_plain(keys, dtype=UINT64, ndim=1):
            return super().ngrams(n, keys)  # type: ignore[misc]
        hashes = numpy.empty((max(0, keys.shape[0] - n + 1) if n > 0 else 0,), dtype="u8")
        load_kernels("tables").ngrams(n, keys, hashes)
        return hashes


def beyond(table: Any) -> IndexError:
    """The error of a row number that the table does not have."""
    return IndexError(f"row numbers must be from 0 to {table.shape[0] - 1}")
