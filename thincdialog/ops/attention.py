"""Attention in sequences that lie one after another, without padding."""

from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple

import numpy
from thinc.api import Ops
from thinc.types import Floats2d

from .bags import places_in_bags
from .compiled import load_kernels
from .devices import HostInts, on_host, upload
from .dialog_cupy_ops import DialogCupyOps
from .dialog_fast_ops import DialogFastOps
from .gpu import kernels

# The gradients of queries, keys and values.
Gradients = Tuple[Floats2d, Floats2d, Floats2d]


class Spans(NamedTuple):
    """Describe which keys each query attends to: those of its own sequence.

    n_queries, n_keys (np.ndarray): Numbers of queries and keys of each sequence, shape
        (n_sequences,), int64, on the host.
    is_causal (bool): Whether each query attends only to keys up to its own position. The queries
        are the last positions of their sequence, so the last query attends to all keys. (If there
        are fewer queries than keys, the first keys are those of earlier steps, which a decoder has
        cached.)
    """

    n_queries: numpy.ndarray
    n_keys: numpy.ndarray
    is_causal: bool = False

    def groups(self) -> Iterator[Tuple[Any, Any, Any, Any]]:
        """Yield groups of sequences with the same numbers of queries and of keys, which can be
        computed together.

        YIELDS (Tuple): The indices of the sequences, shape (n,); of their queries, (n, n_queries);
            and of their keys, (n, n_keys), all int64. If attention is causal, also a mask of the
            keys that each query attends to, (n_queries, n_keys), else None.
        """
        pairs = numpy.stack([self.n_queries, self.n_keys], axis=1)
        starts = pairs.cumsum(axis=0) - pairs
        # One number for both sizes, because rows are slow to sort.
        sizes = self.n_queries * (self.n_keys.max(initial=0) + 1) + self.n_keys
        order = sizes.argsort(kind="stable")
        firsts_of_groups = numpy.flatnonzero(numpy.diff(sizes[order], prepend=-1))
        for some in numpy.split(order, firsts_of_groups[1:]):
            n_queries, n_keys = pairs[some[0]].tolist() if len(some) else (0, 0)
            if n_queries and n_keys:
                firsts = starts[some]
                queries = firsts[:, :1] + numpy.arange(n_queries)
                keys = firsts[:, 1:] + numpy.arange(n_keys)
                seen = None
                if self.is_causal:
                    seen = numpy.tri(n_queries, n_keys, n_keys - n_queries, dtype=bool)
                yield some, queries, keys, seen

    def bounds(self) -> Tuple[numpy.ndarray, numpy.ndarray]:
        """Return the range of keys that each query attends to, and the range of queries that attend
        to each key.

        RETURNS (Tuple[np.ndarray, np.ndarray]): First index and end (exclusive) for each query,
            shape (2, n_queries), and for each key, shape (2, n_keys), int32, over all sequences.
        """
        n_queries, n_keys = self.n_queries, self.n_keys
        more = n_keys - n_queries
        first_queries, first_keys = (n.cumsum() - n for n in (n_queries, n_keys))
        of_queries = numpy.stack([first_keys, first_keys + n_keys]).repeat(n_queries, axis=1)
        of_keys = numpy.stack([first_queries, first_queries + n_queries]).repeat(n_keys, axis=1)
        if self.is_causal:
            of_queries[1] = of_queries[0] + places_in_bags(n_queries) + more.repeat(n_queries) + 1
            of_keys[0] += numpy.maximum(places_in_bags(n_keys) - more.repeat(n_keys), 0)
        return of_queries.astype("i"), of_keys.astype("i")


def within(lengths: HostInts, *, is_causal: bool = False) -> Spans:
    """Let each token attend to all tokens of its sequence, or, if causal, to those up to itself.

    lengths (Ints1d): Number of tokens of each sequence.
    """
    return across(lengths, lengths, is_causal=is_causal)


def across(n_queries: HostInts, n_keys: HostInts, *, is_causal: bool = False) -> Spans:
    """Let queries attend to separate keys; see ``Spans``.

    RAISES (ValueError): If attention is causal, and a sequence has more queries than keys.
    """
    sizes = [on_host(each).astype("int64") for each in (n_queries, n_keys)]
    if is_causal and (sizes[0] > sizes[1]).any():
        raise ValueError("causal attention needs a key for each query")
    return Spans(sizes[0], sizes[1], is_causal)


def attend(
    ops: Ops,
    Q: Floats2d,
    K: Floats2d,
    V: Floats2d,
    spans: Spans,
    n_heads: int,
    *,
    scale: Optional[float] = None,
    is_train: bool = True,
) -> Tuple[Floats2d, Callable[[Floats2d], Gradients]]:
    """Compute multi-head attention of queries to the keys of their sequence.

        Y = softmax(scale Q Kᵀ) V        of each sequence and head

    Sequences with the same numbers of queries and keys are computed together, so nothing is
    padded. On a GPU and in compiled kernels, all sequences are computed together.

    Q (Floats2d): Queries, the heads side by side, shape (n_queries, width), float32.
    K, V (Floats2d): Keys and values, shape (n_keys, width), float32.
    spans (Spans): Which keys each query attends to.
    n_heads (int): Number of heads, which share the width.
    scale (Optional[float]): 1 / sqrt(width of a head) if None.
    is_train (bool): Whether to prepare for the gradient. If False, the gradient can still be
        computed, but takes longer.
    RETURNS (Tuple[Floats2d, Callable]): Y, shape (n_queries, width), 0 for a query without keys;
        and the function that maps the gradient of Y to those of Q, K and V.
    SOURCE: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762
    """
    head = Q.shape[1] // n_heads
    factor = numpy.float32(head**-0.5 if scale is None else scale)
    if isinstance(ops, DialogCupyOps):
        return _attend_on_device(ops, (Q, K, V), spans, n_heads, factor)
    is_compiled = isinstance(ops, DialogFastOps)
    forward = _attend_compiled if is_compiled else _attend_plainly
    backprop_softmax = _backprop_softmax_compiled if is_compiled else ops.backprop_softmax
    Y, prepared = forward(ops, (Q, K, V), spans, n_heads, factor, is_train)

    def backprop(dY: Floats2d) -> Gradients:
        # Queries without keys, and keys without queries, are in no group: their gradient is 0.
        is_partial = bool(((spans.n_queries > 0) != (spans.n_keys > 0)).any())
        dQ, dK, dV = (ops.alloc2f(*X.shape, zeros=is_partial) for X in (Q, K, V))
        matmul = ops.xp.matmul
        groups = prepared or forward(ops, (Q, K, V), spans, n_heads, factor, True)[1]
        for queries, keys, P in groups:
            q, k, dy = (
                _by_head(X[at], n_heads) for X, at in ((Q, queries), (K, keys), (dY, queries))
            )
            v = k if V is K else _by_head(V[keys], n_heads)
            dS = backprop_softmax(P, matmul(dy, v.transpose(0, 1, 3, 2)))  # shape as P
            dS *= factor
            dQ[queries] = _side_by_side(matmul(dS, k))
            dK[keys] = _side_by_side(matmul(dS.transpose(0, 1, 3, 2), q))
            dV[keys] = _side_by_side(matmul(P.transpose(0, 1, 3, 2), dy))
        return dQ, dK, dV

    return Y, backprop


def _attend_plainly(
    ops: Ops, QKV: Tuple[Any, Any, Any], spans: Spans, n_heads: int, factor: Any, is_train: bool
) -> Tuple[Any, List[Any]]:
    """Return Y; and for each group its queries and keys (see ``Spans.groups``), and P, shape
    (n_sequences, n_heads, n_queries, n_keys)."""
    Y, groups = ops.alloc2f(*QKV[0].shape), []
    for _, queries, keys, seen in spans.groups():
        q, k, v = (_by_head(X[at], n_heads) for X, at in zip(QKV, (queries, keys, keys)))
        P = ops.xp.matmul(q, k.transpose(0, 1, 3, 2))
        P *= factor
        if seen is not None:
            P[..., ~seen] = -numpy.inf
        P = ops.softmax(P, inplace=True)
        Y[queries] = _side_by_side(ops.xp.matmul(P, v))
        groups.append((queries, keys, P))
    return Y, groups


def _attend_compiled(
    ops: Ops, QKV: Tuple[Any, Any, Any], spans: Spans, n_heads: int, factor: Any, is_train: bool
) -> Tuple[Any, List[Any]]:
    """Return the same as ``_attend_plainly``, computed by a compiled kernel; no groups unless
    ``is_train``."""
    Y, n_cells = numpy.zeros(QKV[0].shape, dtype="f"), spans.n_queries * spans.n_keys * n_heads
    cells = numpy.empty(int(n_cells.sum()) if is_train else 0, dtype="f")
    if Y.size and n_cells.any():
        sizes = (spans.n_queries, spans.n_keys, spans.is_causal, n_heads, factor)
        load_kernels("attention").attend(*map(_flat, QKV), *sizes, Y, cells)
    starts = n_cells.cumsum() - n_cells
    groups = []
    for some, queries, keys, _ in spans.groups() if is_train else ():
        P = cells[starts[some][:, None] + numpy.arange(n_cells[some[0]])]
        shape = (len(some), n_heads, queries.shape[1], keys.shape[1])
        groups.append((queries, keys, P.reshape(shape)))
    return Y, groups


def _backprop_softmax_compiled(P: Any, dP: Any) -> Any:
    dS = numpy.empty_like(P)
    rows = (each.reshape((-1, P.shape[3])) for each in (P, dP, dS))
    load_kernels("rows").backprop_softmax(*rows)
    return dS


def _flat(X: Any) -> Tuple[Any, int, int]:
    """Return columns of a wider array in the form that kernels multiply: the floats, the index of
    the first row among them, and the distance between rows."""
    X = X if X.strides[1] == X.itemsize else numpy.ascontiguousarray(X)
    stride = X.strides[0] // X.itemsize
    n_cells = (X.shape[0] - 1) * stride + X.shape[1]
    return numpy.lib.stride_tricks.as_strided(X, (n_cells,), (X.itemsize,)), 0, stride


def _by_head(X: Any, n_heads: int) -> Any:
    """Reshape (n, length, width) to (n, n_heads, length, head)."""
    return X.reshape((*X.shape[:2], n_heads, -1)).transpose(0, 2, 1, 3)


def _side_by_side(X: Any) -> Any:
    """Reshape (n, n_heads, length, head) to (n, length, width), the inverse of ``_by_head``."""
    n, n_heads, length, head = X.shape
    return X.transpose(0, 2, 1, 3).reshape(n, length, n_heads * head)


def _attend_on_device(
    ops: Ops, QKV: Tuple[Any, Any, Any], spans: Spans, n_heads: int, factor: Any
) -> Tuple[Any, Callable]:
    of_queries, of_keys = upload(ops, *spans.bounds())
    Q, K, V = map(ops.as_contig, QKV)
    Y, logs = kernels.attend(Q, K, V, of_queries, n_heads, factor)

    def backprop(dY: Any) -> Gradients:
        return kernels.backprop_attend(dY, (Y, logs, Q, K, V), of_queries, of_keys, factor)

    return Y, backprop
