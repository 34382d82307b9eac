"""Attention within sequences that lie one behind the other, without padding."""

from typing import Any, Callable, Iterator, List, Tuple

import numpy
from thinc.api import Ops
from thinc.types import Floats2d, Floats3d, Ints1d

from .dialog_cupy_ops import DialogCupyOps
from .known_numbers import derived

# A group of sequences of one length: queries, keys, values and weights, and their rows.
_Group = Tuple[Any, Any, Any, Any, Any]


def attend(
    ops: Ops, QKV: Floats2d, lengths: Ints1d, n_heads: int
) -> Tuple[Floats2d, Callable[[Floats2d], Floats2d]]:
    """Let each token attend to all tokens of its sequence, several times side by side.

        Y = softmax(Q Kᵀ / sqrt(width of a head)) V        of each sequence and head

    Sequences of one length are computed together, so no cell is padded; on a GPU, all are.

    QKV (Floats2d): Queries, keys and values side by side, each of all heads, shape
        (n_tokens, 3 * width), float32.
    lengths (Ints1d): Tokens of each sequence, int32.
    n_heads (int): How many heads share the width.
    RETURNS (Tuple[Floats2d, Callable]): Y, shape (n_tokens, width); and the function that
        takes the gradient of Y to that of QKV.
    SOURCE: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762
    """
    if isinstance(ops, DialogCupyOps):
        return ops.attend(QKV, lengths, n_heads)
    n_tokens, width = QKV.shape[0], QKV.shape[1] // 3
    head = width // n_heads
    factor = numpy.float32(head**-0.5)
    by_head: Any = ops.reshape(QKV, (n_tokens, 3, n_heads, head))
    Y = ops.alloc2f(n_tokens, width, zeros=False)
    done: List[_Group] = []
    for _, rows in _by_length(ops, lengths):
        # (3, n_sequences, n_heads, length, head)
        Q, K, V = by_head[rows].transpose(2, 0, 3, 1, 4)
        P = ops.xp.matmul(Q, K.transpose(0, 1, 3, 2))  # (n_sequences, n_heads, length, length)
        P *= factor
        P = ops.softmax(P, inplace=True)
        found = ops.xp.matmul(P, V)  # (n_sequences, n_heads, length, head)
        Y[rows] = found.transpose(0, 2, 1, 3).reshape(*rows.shape, width)
        done.append((rows, Q, K, V, P))

    def backprop(dY: Floats2d) -> Floats2d:
        matmul = ops.xp.matmul
        dY_by_head: Any = ops.reshape(dY, (n_tokens, n_heads, head))
        dQKV = ops.alloc2f(n_tokens, 3 * width, zeros=False)
        d_by_head: Any = ops.reshape(dQKV, (n_tokens, 3, n_heads, head))
        for rows, Q, K, V, P in done:
            d_found = dY_by_head[rows].transpose(0, 2, 1, 3)  # as found
            dP = matmul(d_found, V.transpose(0, 1, 3, 2))  # as P
            dS = ops.backprop_softmax(P, dP)
            dS *= factor
            d_group = ops.xp.empty((*rows.shape, 3, n_heads, head), dtype="f")
            d_group[:, :, 0] = matmul(dS, K).transpose(0, 2, 1, 3)
            d_group[:, :, 1] = matmul(dS.transpose(0, 1, 3, 2), Q).transpose(0, 2, 1, 3)
            d_group[:, :, 2] = matmul(P.transpose(0, 1, 3, 2), d_found).transpose(0, 2, 1, 3)
            d_by_head[rows] = d_group
        return dQKV

    return Y, backprop


def attend_with(
    ops: Ops, queries: Floats2d, X: Floats2d, lengths: Ints1d
) -> Tuple[Floats3d, Callable[[Floats3d], Tuple[Floats2d, Floats2d]]]:
    """Let each query attend to all tokens of each sequence.

        Y = softmax(queries Xᵀ) X        of each sequence

    queries (Floats2d): Shape (n_queries, width), float32.
    X (Floats2d): Tokens of all sequences, shape (n_tokens, width), float32.
    lengths (Ints1d): Tokens of each sequence, int32.
    RETURNS (Tuple[Floats3d, Callable]): Y, shape (n_sequences, n_queries, width), 0 for a
        sequence without tokens; and the function that takes the gradient of Y to those of
        queries and X.
    """
    if isinstance(ops, DialogCupyOps):
        return ops.attend_with(queries, X, lengths)
    matmul = ops.xp.matmul
    n_tokens, width = X.shape
    Y = ops.alloc3f(lengths.shape[0], queries.shape[0], width)
    done = []
    for members, rows in _by_length(ops, lengths):
        tokens = X[rows]  # (n, length, width)
        P = ops.softmax(matmul(queries, tokens.transpose(0, 2, 1)))  # (n, n_queries, length)
        Y[members] = matmul(P, tokens)  # (n, n_queries, width)
        done.append((members, rows, tokens, P))

    def backprop(dY: Floats3d) -> Tuple[Floats2d, Floats2d]:
        d_queries = ops.alloc2f(*queries.shape)
        dX = ops.alloc2f(n_tokens, width)
        for members, rows, tokens, P in done:
            d_found = dY[members]  # (n, n_queries, width)
            dP = matmul(d_found, tokens.transpose(0, 2, 1))  # as P
            dS = ops.backprop_softmax(P, dP)
            d_queries += matmul(dS, tokens).sum(axis=0)
            dX[rows] = matmul(P.transpose(0, 2, 1), d_found) + matmul(
                dS.transpose(0, 2, 1), queries
            )
        return d_queries, dX

    return Y, backprop


def _by_length(ops: Ops, lengths: Ints1d) -> Iterator[Tuple[Any, Any]]:
    """Of each length above 0 that occurs, the numbers of the sequences that have it, shape
    (n_sequences,), and their rows, shape (n_sequences, length); int64."""
    found = derived(ops, _members_and_rows, lengths)
    return zip(found[::2], found[1::2])


def _members_and_rows(lengths: Any) -> Tuple[Any, ...]:
    lengths = lengths.astype(numpy.int64)
    starts = lengths.cumsum() - lengths
    order = lengths.argsort(kind="stable")
    firsts = numpy.flatnonzero(numpy.diff(lengths[order], prepend=-1))
    found: List[Any] = []
    for members in numpy.split(order, firsts[1:]):
        length = lengths[members[0]] if len(members) else 0
        if length:
            found += [members, starts[members][:, None] + numpy.arange(length)]
    return tuple(found)
