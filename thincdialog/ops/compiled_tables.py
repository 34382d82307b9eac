"""Rows of tables, gathered and added up, that run compiled."""

from typing import Any, Optional, Tuple

import numpy

from .compiled import INT32, UINT64, are_plain, load_kernels


class CompiledTables:
    """Part of ``DialogFastOps``: what embedding layers are made of. The first four are
    Thinc's; ``bags`` asks for the others."""

    def gather_add(self, table: Any, indices: Any) -> Any:
        if not (are_plain(table, ndim=2) and are_plain(indices, dtype=INT32, ndim=2)):
            return super().gather_add(table, indices)  # type: ignore[misc]
        Y = numpy.zeros((indices.shape[0], table.shape[1]), dtype="f")
        if not load_kernels("tables").gather_add(table, indices, Y):
            raise _beyond(table)
        return Y

    def scatter_add(self, table: Any, indices: Any, values: Any) -> Any:
        if not (
            are_plain(table, values, ndim=2)
            and are_plain(indices, dtype=INT32, ndim=1)
            and values.shape == (indices.shape[0], table.shape[1])
        ):
            return super().scatter_add(table, indices, values)  # type: ignore[misc]
        if not load_kernels("tables").scatter_add(table, indices, values):
            raise _beyond(table)
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

    def sum_bags(self, table: Any, ids: Any, lengths: Any) -> Any:
        """See ``bags.sum_bags``."""
        Y = numpy.zeros((lengths.shape[0], table.shape[1]), dtype="f")
        if not load_kernels("tables").sum_bags(table, _ints(ids), _ints(lengths), Y):
            raise _beyond(table)
        return Y

    def sum_by_key(self, values: Any, keys: Any, sources: Optional[Any]) -> Tuple[Any, Any]:
        """See ``bags.sum_by_key``."""
        if sources is None:
            sources = numpy.arange(keys.shape[0])
        values = numpy.ascontiguousarray(values, dtype="f")
        sources = numpy.ascontiguousarray(sources, dtype="i8")
        return load_kernels("tables").sum_by_key(values, _ints(keys), sources)

    def bag_numbers(self, lengths: Any, n_ids: int) -> Any:
        """See ``bags.bag_numbers``."""
        numbers = numpy.empty((n_ids,), dtype="i8")
        load_kernels("tables").bag_numbers(_ints(lengths), numbers)
        return numbers

    def split_bags(self, tokens: Any, lengths: Any, n_segments: int) -> Tuple[Any, Any]:
        """See ``bags.split_bags``."""
        ids = numpy.empty((tokens.shape[0],), dtype="i")
        sizes = numpy.zeros((lengths.shape[0] * n_segments,), dtype="i")
        load_kernels("tables").split_bags(_ints(tokens), _ints(lengths), n_segments, ids, sizes)
        return ids, sizes


def _ints(array: Any) -> Any:
    return numpy.ascontiguousarray(array, dtype="i")


def _beyond(table: Any) -> IndexError:
    return IndexError(f"row numbers must be from 0 to {table.shape[0] - 1}")
