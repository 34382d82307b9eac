"""Kernels over bags of ids: sums of table rows, and the gradient of such sums.

They run on stock ops of the CPU, too, in blocks that stay in its cache; on ``DialogFastOps``
they are compiled. On a GPU, the host says which rows there are, and kernels add them up.
"""

from typing import Any, Iterator, Optional, Sequence, Tuple

import numpy
from thinc.api import Ops
from thinc.types import Floats2d, Ints1d, Ints2d
from thinc.util import is_numpy_array

from .compiled import load_kernels
from .dialog_fast_ops import DialogFastOps, beyond
from .gpu import kernels
from .known_numbers import derived
from .slices import slice_places

# Ids a block: 1,024 rows of 256 floats are 1 MB, one core's second-level cache.
_BLOCK_IDS = 1024
# Rows that one block of a GPU adds up: more are added in two phases.
_CHUNK = 64


def sum_bags(
    ops: Ops, table: Floats2d, ids: Ints1d, lengths: Ints1d, scale: Optional[Floats2d] = None
) -> Floats2d:
    """Sum the table's rows of every bag.

    table (Floats2d): Shape (n_rows, width), float32.
    ids (Ints1d): Row numbers of all bags, one after another, int32.
    lengths (Ints1d): Ids of each bag, shape (n_bags,), int32; 0 is allowed.
    scale (Optional[Floats2d]): Factor of each bag's sum, shape (n_bags, 1).
    RETURNS (Floats2d): Shape (n_bags, width); zeros for an empty bag.
    """
    if not is_numpy_array(table):
        (starts,) = derived(ops, _starts, lengths)
        return kernels.sum_rows(table, ids, starts, factors=scale)
    Y = ops.alloc2f(lengths.shape[0], table.shape[1])
    if isinstance(ops, DialogFastOps):
        if not load_kernels("tables").sum_bags(table, _ints(ids), _ints(lengths), Y):
            raise beyond(table)
        return Y if scale is None else _scaled(Y, scale)
    for bags, part in _blocks(lengths):
        if part.stop > part.start:
            rows = ops.xp.take(table, ids[part], axis=0)  # (n_ids in the block, width)
            Y[bags] = ops.reduce_sum(rows, lengths[bags])
    return Y if scale is None else _scaled(Y, scale)


def row_gradients(
    ops: Ops,
    d_sums: Floats2d,
    ids: Ints1d,
    lengths: Ints1d,
    scale: Optional[Floats2d] = None,
) -> Tuple[Ints1d, Floats2d]:
    """The gradient of ``sum_bags`` for the rows that occur, summed over occurrences.

    d_sums (Floats2d): Gradient of the sums, shape (n_bags, width).
    ids, lengths, scale: As for ``sum_bags``.
    RETURNS (Tuple[Ints1d, Floats2d]): The distinct rows, ascending, int32, shape (n,),
        and the gradient of each, shape (n, width).
    """
    if not is_numpy_array(d_sums):
        return sum_parts(ops, [parts_by_row(ops, d_sums, ids, lengths, scale)])
    if scale is not None:
        d_sums = d_sums * scale
    return sum_by_key(ops, d_sums, ids, sources=bag_numbers(ops, lengths, ids.shape[0]))


def parts_by_row(
    ops: Ops,
    d_sums: Floats2d,
    ids: Ints1d,
    lengths: Ints1d,
    scale: Optional[Floats2d] = None,
) -> Tuple[Ints1d, Floats2d]:
    """``row_gradients``, but on a device, the gradient of a row that occurs often stays in parts.
    Who needs those of several batches adds all up at once (``sum_parts``)."""
    if is_numpy_array(d_sums):
        return row_gradients(ops, d_sums, ids, lengths, scale)
    rows, sources, chunks = derived(ops, _bags_by_id, ids, lengths)
    return rows, kernels.sum_rows(d_sums, sources, chunks, weights=scale)


def sum_by_key(
    ops: Ops, values: Floats2d, keys: Ints1d, sources: Optional[Ints1d] = None
) -> Tuple[Ints1d, Floats2d]:
    """Sum the rows that have the same key, in their order: the same bits each time,
    on a GPU too (where adding by key in parallel would not give them).

    values (Floats2d): Shape (n_values, width), float32.
    keys (Ints1d): From 0, below 2**31, shape (n,).
    sources (Optional[Ints1d]): Number of the row of ``values`` that each key stands
        for, shape (n,); None if key i stands for row i.
    RETURNS (Tuple[Ints1d, Floats2d]): The distinct keys, ascending, int32, shape
        (n_distinct,), and the sum for each, shape (n_distinct, width).
    """
    if not is_numpy_array(values):
        return sum_parts(ops, [parts_by_key(ops, values, keys, sources)])
    xp: Any = ops.xp
    n = keys.shape[0]
    if isinstance(ops, DialogFastOps):
        rows = xp.ascontiguousarray(xp.arange(n) if sources is None else sources, dtype="i8")
        values = xp.ascontiguousarray(values, dtype="f")
        return load_kernels("tables").sum_by_key(values, _ints(keys), rows)
    if n == 0:
        return ops.alloc1i(0), ops.alloc2f(0, values.shape[1])
    # One sort by (key, position): the key in the upper half, the position in the lower.
    both = xp.sort((keys.astype("int64") << 32) | xp.arange(n, dtype="int64"))
    in_order, rows = (both >> 32).astype("int32"), both & 0xFFFFFFFF
    if sources is not None:
        rows = sources[rows]
    is_first = xp.ones((n,), dtype=bool)
    is_first[1:] = in_order[1:] != in_order[:-1]
    firsts = xp.flatnonzero(is_first)
    counts = ops.alloc1i(firsts.shape[0])
    counts[:-1] = firsts[1:] - firsts[:-1]
    counts[-1:] = n - firsts[-1:]
    sums = ops.alloc2f(firsts.shape[0], values.shape[1])
    for groups, part in _blocks(counts):
        sums[groups] = ops.reduce_sum(xp.take(values, rows[part], axis=0), counts[groups])
    return in_order[firsts], sums


def parts_by_key(
    ops: Ops, values: Floats2d, keys: Ints1d, sources: Optional[Ints1d] = None
) -> Tuple[Ints1d, Floats2d]:
    """``sum_by_key``, but a device leaves the sums in parts, as in ``parts_by_row``."""
    if is_numpy_array(values):
        return sum_by_key(ops, values, keys, sources)
    given = (keys,) if sources is None else (keys, sources)
    rows, places, chunks = derived(ops, _by_key, *given)
    return rows, kernels.sum_rows(values, places, chunks)


def parts_by_keys(ops: Ops, values: Floats2d, *keys: Ints1d) -> Tuple[Tuple[Ints1d, Floats2d], ...]:
    """``parts_by_key`` for each of several keys of the same values."""
    if is_numpy_array(values):
        return tuple(sum_by_key(ops, values, each) for each in keys)
    *rows, places, chunks = derived(ops, _by_keys, *keys)
    parts: Any = kernels.sum_rows(values, places, chunks)
    ends = numpy.cumsum([each.shape[0] for each in rows]).tolist()
    return tuple((each, parts[end - each.shape[0] : end]) for each, end in zip(rows, ends))


def products_by_key(
    ops: Ops, keys: Ints1d, A: Floats2d, a: Ints1d, B: Floats2d, b: Ints1d
) -> Tuple[Ints1d, Floats2d]:
    """Of a device: the products of rows of A and B, by their numbers, summed in parts (see
    ``parts_by_row``) of one key each.

    keys, a, b (Ints1d): Of each product, shape (n,), int32.
    """
    rows, of_A, of_B, chunks = derived(ops, _by_key, keys, a, b)
    return rows, kernels.sum_products(A, of_A, B, of_B, chunks)


def bag_numbers(ops: Ops, lengths: Ints1d, n_ids: int) -> Ints1d:
    """The bag each id lies in.

    lengths (Ints1d): Ids of each bag, shape (n_bags,).
    n_ids (int): Sum of the lengths.
    RETURNS (Ints1d): Shape (n_ids,), int64.
    """
    if isinstance(ops, DialogFastOps):
        numbers: Any = numpy.arange(lengths.shape[0], dtype="i8").repeat(_ints(lengths))
        return numbers
    (numbers,) = derived(ops, _bag_numbers, lengths)
    return numbers


def split_bags(ops: Ops, tokens: Ints2d, lengths: Ints1d, n_segments: int) -> Tuple[Ints1d, Ints1d]:
    """Cut each bag into one bag for each segment.

    tokens (Ints2d): Ids and segments, int32, shape (n_tokens, 2).
    lengths (Ints1d): Tokens of each bag, shape (n_bags,), int32.
    n_segments (int): How many; tokens of later ones belong to the last.
    RETURNS (Tuple[Ints1d, Ints1d]): Ids in the order of (bag, segment), shape
        (n_tokens,), and how many each has, shape (n_bags * n_segments,), int32.
    """
    if isinstance(ops, DialogFastOps):
        ids, sizes = ops.alloc1i(tokens.shape[0]), ops.alloc1i(lengths.shape[0] * n_segments)
        load_kernels("tables").split_bags(_ints(tokens), _ints(lengths), n_segments, ids, sizes)
        return ids, sizes
    ids, sizes = derived(ops, _split_bags, tokens, lengths, n_segments)
    return ids, sizes


def _split_bags(tokens: Any, lengths: Any, n_segments: int) -> Tuple[Any, ...]:
    segments = numpy.minimum(tokens[:, 1], n_segments - 1)
    pools = numpy.arange(len(lengths)).repeat(lengths) * n_segments + segments
    sizes = numpy.bincount(pools, minlength=len(lengths) * n_segments)
    order = numpy.argsort(pools, kind="stable")
    return tokens[order, 0], sizes.astype("int32")


def _bag_numbers(lengths: Any) -> Tuple[Any, ...]:
    return (numpy.arange(len(lengths)).repeat(lengths),)


def _starts(lengths: Any) -> Tuple[Any, ...]:
    return (numpy.concatenate(([0], lengths.cumsum())).astype("i"),)


def _bags_by_id(ids: Any, lengths: Any) -> Tuple[Any, ...]:
    return _by_key(ids, *_bag_numbers(lengths))


def sum_parts(
    ops: Ops, parts: Sequence[Tuple[Ints1d, Floats2d]], into: Optional[Floats2d] = None
) -> Tuple[Ints1d, Floats2d]:
    """Add up what a device has of the same rows, in its order.

    parts (Sequence[Tuple[Ints1d, Floats2d]]): One or more: row numbers that the host knows, and
        what belongs to them, shape (n, width).
    into (Optional[Floats2d]): Array of all rows, to add it to.
    RETURNS (Tuple[Ints1d, Floats2d]): The distinct rows, ascending, int32, and the sum for each,
        or ``into``.
    """
    rows, places, starts = derived(ops, _rows_of_parts, *(each for each, _ in parts))
    values: Any = [each for _, each in parts]
    together = values[0] if len(values) == 1 else ops.xp.concatenate(values)
    more = {} if into is None else {"rows": rows, "into": into}
    return rows, kernels.sum_rows(together, places, starts, **more)


def add_to_rows(ops: Ops, gradient: Floats2d, parts: Sequence[Tuple[Ints1d, Floats2d]]) -> Ints1d:
    """``sum_parts`` into a gradient; RETURNS (Ints1d): The rows that were added to."""
    return sum_parts(ops, parts, gradient)[0]


def _by_key(keys: Any, *sources: Any) -> Tuple[Any, ...]:
    """The sources, or the places of the keys, in the order of their keys, cut into chunks, none
    with two keys or more than ``_CHUNK``: of each chunk its key, the sources, and where the
    chunks begin. All int32."""
    order, in_order, firsts = _sorted(keys)
    counts = numpy.diff(firsts, append=len(keys))
    n_chunks = -(-counts // _CHUNK)
    chunks = slice_places(numpy.zeros_like(n_chunks), n_chunks) * _CHUNK + firsts.repeat(n_chunks)
    of_chunks = in_order[firsts].repeat(n_chunks)
    in_chunks = [each[order] for each in sources] or [order]
    found = (of_chunks, *in_chunks, numpy.append(chunks, len(keys)))
    return tuple(each.astype("i") for each in found)


def _by_keys(*keys: Any) -> Tuple[Any, ...]:
    """``_by_key`` of each, one after the other: of each its chunks' keys; the places; and where
    the chunks begin."""
    rows, places, chunks = zip(*map(_by_key, keys))
    n = len(keys[0])
    starts = [each[:-1] + n * number for number, each in enumerate(chunks)]
    ends = numpy.array([n * len(keys)], dtype="i")
    return (*rows, numpy.concatenate(places), numpy.concatenate([*starts, ends]).astype("i"))


def _rows_of_parts(*rows: Any) -> Tuple[Any, ...]:
    """Distinct rows, ascending; the places in the order of their rows; and where in these each
    row begins, and the end of the last. All int32."""
    together = numpy.concatenate(rows)
    order, in_order, firsts = _sorted(together)
    starts = numpy.append(firsts, len(together))
    return tuple(each.astype("i") for each in (in_order[firsts], order, starts))


def _sorted(keys: Any) -> Tuple[Any, Any, Any]:
    """Places in the order of their keys, the keys in this order, and where each begins there."""
    order = numpy.argsort(keys, kind="stable")
    in_order = keys[order]
    return order, in_order, numpy.flatnonzero(numpy.diff(in_order, prepend=-1))


def _scaled(Y: Any, scale: Any) -> Any:
    Y *= scale
    return Y


def _ints(array: Any) -> Any:
    return numpy.ascontiguousarray(array, dtype="i")


def _blocks(lengths: Ints1d) -> Iterator[Tuple[slice, slice]]:
    """Cut bags into blocks of about ``_BLOCK_IDS`` ids: (bags, their ids)."""
    ends: Any = numpy.concatenate(([0], numpy.cumsum(numpy.asarray(lengths))))
    n_bags, first = lengths.shape[0], 0
    while first < n_bags:
        full = int(numpy.searchsorted(ends, ends[first] + _BLOCK_IDS, side="right")) - 1
        last = max(first + 1, full)
        yield slice(first, last), slice(int(ends[first]), int(ends[last]))
        first = last
