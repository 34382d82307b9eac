"""Sums of table rows over bags of ids, and the gradients of such sums.

On stock CPU ops, they are computed in blocks that fit into the cache; on ``DialogFastOps``, by
compiled kernels. On a GPU, the host sorts the ids, and a kernel sums the rows.
"""

from typing import Any, Iterator, Tuple

import numpy
from thinc.api import Ops
from thinc.types import Floats2d, Ragged
from thinc.util import is_numpy_array

from .compiled import load_kernels
from .devices import HostInts, on_host, upload
from .dialog_cupy_ops import starts_of
from .dialog_fast_ops import DialogFastOps
from .gpu import kernels

# Number of ids in a block: 1,024 rows of 256 floats are 1 MB, a core's second-level cache.
_BLOCK_IDS = 1024


def sum_bags(
    ops: Ops, table: Floats2d, ids: HostInts, lengths: HostInts, scale: Any = None
) -> Floats2d:
    """Sum the table's rows of every bag.

    table (Floats2d): Shape (n_rows, width), float32.
    ids (Ints1d): Row numbers of all bags, one after another, on the host.
    lengths (Ints1d): Number of ids of each bag, shape (n_bags,), on the host; 0 is allowed.
    scale (Optional[Floats2d]): Factor of each bag's sum, shape (n_bags, 1), on the host; None for
        1.
    RETURNS (Floats2d): Shape (n_bags, width); zeros for an empty bag.
    """
    if not is_numpy_array(table):
        given = (_ints(ids), starts_of(lengths), *([] if scale is None else [scale]))
        return kernels.sum_rows(table, *upload(ops, *given))
    Y: Any = ops.alloc2f(lengths.shape[0], table.shape[1])
    if isinstance(ops, DialogFastOps):
        rows = numpy.ascontiguousarray(table, dtype="f")
        if not load_kernels("tables").sum_bags(rows, _ints(ids), _ints(lengths), Y):
            raise IndexError(f"row numbers must be from 0 to {table.shape[0] - 1}")
    else:
        for bags, part in _blocks(lengths):
            if part.stop > part.start:
                rows = ops.xp.take(table, ids[part], axis=0)  # (n_ids in the block, width)
                Y[bags] = ops.reduce_sum(rows, lengths[bags])
    if scale is not None:
        Y *= scale
    return Y


def row_gradients(
    ops: Ops, d_sums: Floats2d, ids: HostInts, lengths: HostInts, scale: Floats2d
) -> Tuple[HostInts, Floats2d]:
    """Return the gradient of ``sum_bags`` for the distinct rows in the bags, summed over repeated
    ids.

    d_sums (Floats2d): Gradient of the sums, shape (n_bags, width).
    ids, lengths, scale: As for ``sum_bags``.
    RETURNS (Tuple[Ints1d, Floats2d]): The distinct rows, ascending, int32, shape (n,), on the
        host; and the gradient of each, shape (n, width).
    """
    (factors,) = upload(ops, scale)
    return sum_by_key(ops, d_sums * factors, ids, sources=bag_numbers(lengths))


def sum_by_key(
    ops: Ops, values: Floats2d, keys: HostInts, sources: HostInts = None
) -> Tuple[HostInts, Floats2d]:
    """Sum the rows that have the same key, in their order. The result is reproducible bit for bit,
    also on a GPU (where parallel additions by key would not be).

    values (Floats2d): Shape (n_values, width), float32.
    keys (Ints1d): At least 0 and below 2**31, shape (n,), on the host.
    sources (Optional[Ints1d]): Index of the row of ``values`` that each key belongs to, shape
        (n,), on the host; None if key i belongs to row i.
    RETURNS (Tuple[Ints1d, Floats2d]): The distinct keys, ascending, int32, shape
        (n_distinct,), on the host; and the sum for each, shape (n_distinct, width).
    """
    rows = _order(keys)
    in_order = _ints(keys[rows])
    if sources is not None:
        rows = sources[rows]
    is_first = numpy.ones(keys.shape, dtype=bool)
    is_first[1:] = in_order[1:] != in_order[:-1]
    firsts = numpy.flatnonzero(is_first)
    counts: Any = numpy.diff(numpy.append(firsts, keys.shape)).astype("i")
    return in_order[firsts], sum_bags(ops, values, rows, counts)


def bag_numbers(lengths: HostInts) -> HostInts:
    """Return the number of the bag that each id lies in.

    lengths (Ints1d): Number of ids of each bag, shape (n_bags,), on the host.
    RETURNS (Ints1d): Shape (n_ids,), int64.
    """
    return numpy.arange(lengths.shape[0], dtype="i8").repeat(lengths)


def places_in_bags(lengths: HostInts) -> HostInts:
    """Return the position of each id in its bag, from 0; shape (n_ids,), int64. Arguments are those
    of ``bag_numbers``."""
    sizes = on_host(lengths).astype("i8")
    return numpy.arange(sizes.sum()) - (sizes.cumsum() - sizes).repeat(sizes)


def kept_tokens(tokens: HostInts, lengths: HostInts, is_kept: HostInts) -> Ragged:
    """Return some tokens of each example, in their order.

    tokens (Ints2d): Token ids and segments of all examples, shape (n_tokens, 2).
    lengths (Ints1d): Number of tokens of each example, shape (n_examples,).
    is_kept (np.ndarray): Whether to keep each token, bool, shape (n_tokens,).
    """
    counts: Any = numpy.bincount(bag_numbers(lengths)[is_kept], minlength=len(lengths))
    return Ragged(tokens[is_kept], counts.astype("i"))


def split_bags(tokens: HostInts, lengths: HostInts, n_segments: int) -> Tuple[HostInts, HostInts]:
    """Split each bag into one bag per segment.

    tokens (Ints2d): Token ids and segments, int32, shape (n_tokens, 2).
    lengths (Ints1d): Number of tokens of each bag, shape (n_bags,), int32.
    n_segments (int): Number of segments; tokens of later segments belong to the last one.
    RETURNS (Tuple[Ints1d, Ints1d]): Ids in the order of (bag, segment), shape (n_tokens,), and
        the number of ids of each (bag, segment), shape (n_bags * n_segments,), int32.
    """
    segments = numpy.minimum(tokens[:, 1], n_segments - 1)
    pools = numpy.arange(len(lengths)).repeat(lengths) * n_segments + segments
    in_pools = numpy.bincount(pools, minlength=len(lengths) * n_segments)
    return tokens[_order(pools), 0], in_pools.astype("int32")


def _order(keys: HostInts) -> HostInts:
    """Return the indices that sort keys (0 to 2**31 - 1) stably. Keys are sorted by their two
    16-bit halves, because NumPy uses radix sort for these, which is several times as fast."""
    order = keys.astype("uint16").argsort(kind="stable")
    upper = keys >> 16
    return order[upper[order].astype("uint16").argsort(kind="stable")] if upper.any() else order


def _ints(array: Any) -> Any:
    return numpy.ascontiguousarray(array, dtype="i")


def _blocks(lengths: HostInts) -> Iterator[Tuple[slice, slice]]:
    """Cut bags into blocks of about ``_BLOCK_IDS`` ids, and yield slices of the bags and of their
    ids."""
    ends: Any = numpy.concatenate(([0], numpy.cumsum(numpy.asarray(lengths))))
    n_bags, first = lengths.shape[0], 0
    while first < n_bags:
        full = int(numpy.searchsorted(ends, ends[first] + _BLOCK_IDS, side="right")) - 1
        last = max(first + 1, full)
        yield slice(first, last), slice(int(ends[first]), int(ends[last]))
        first = last
