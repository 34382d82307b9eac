"""Attention to memories in several hops, led by a question."""

from typing import Any, Callable, List, Optional, Tuple, cast

import numpy
from thinc.api import Model, Ops
from thinc.types import Floats2d, Ints1d, Ragged
from thinc.util import get_width

from ..ops.devices import on_host, upload
from ..ops.dialog_ops import training_step
from ..registry import registry

InT = Ragged
OutT = Floats2d


@registry.layers("thincdialog.MemoryHops.v1")
def MemoryHops(
    nO: Optional[int] = None, *, n_hops: int = 3, n_memories: int = 0, linear_start: int = 0
) -> Model[InT, OutT]:
    """Attend to an example's vectors several times (hops), starting from its last vector, the
    question.

        u_0     = Q_0
        p_k     = softmax over memories i of u_k . M_ik
        u_(k+1) = u_k + sum_i p_ki M_i(k+1)

    A row holds n_hops + 1 vectors side by side. Row i of an example's memories gives M_i0 ...
    M_i(n_hops), and its last row gives Q_0 (adjacent tying: the output vectors of a hop are the
    keys of the next). An example without memories gives Q_0.

    If attention to any memory would do harm, it can go to empty memories (zeros). With a linear
    start, the first training steps use the logits instead of their softmax.

    nO (Optional[int]): Width of one vector; from the data if None.
    n_hops (int): Number of hops, 1 or more.
    n_memories (int): Number of memories up to which an example with fewer gets empty ones.
    linear_start (int): Number of training steps without a softmax.
    X (Ragged): Memories and, last, the question; shape (n_rows, (n_hops + 1) * nO),
        float32. Every example has a question.
    RETURNS (Model[Ragged, Floats2d]): u_(n_hops), shape (n_examples, nO).
    RAISES (ValueError): If n_hops is below 1.
    SOURCE: Sukhbaatar et al. 2015, https://arxiv.org/abs/1503.08895, sections 2.2 and 4.2
    """
    if n_hops < 1:
        raise ValueError(f"MemoryHops: n_hops = {n_hops}, but it must be 1 or more")
    attrs = {"n_hops": n_hops, "n_memories": n_memories, "linear_start": linear_start}
    return Model("memory_hops", forward, init=init, dims={"nO": nO, "nI": None}, attrs=attrs)


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops, xp, n_hops = model.ops, model.ops.xp, model.attrs["n_hops"]
    rows = cast(Floats2d, X.dataXd)  # (n_rows, (n_hops + 1) * nO)
    # The rows of memories and questions, the number of memories of each example, and the
    # example of each memory.
    lengths: Any = on_host(X.lengths)
    last, sizes = lengths.cumsum() - 1, lengths - 1
    numbers = numpy.delete(numpy.arange(lengths.sum()), last)
    memory, question, owners = upload(ops, numbers, last, numpy.arange(len(sizes)).repeat(sizes))
    vectors: Any = rows.reshape((rows.shape[0], n_hops + 1, model.get_dim("nO")))
    memories = vectors[memory]  # (n_memories, n_hops + 1, nO)
    u = vectors[question, 0]  # (n_examples, nO)
    n_empty = numpy.maximum(model.attrs["n_memories"] - sizes, 0)
    is_linear = is_train and 1 <= training_step(ops) <= model.attrs["linear_start"]
    readings: List[Tuple[Any, Any]] = []
    for k in range(n_hops):
        logits = (u[owners] * memories[:, k]).sum(axis=1)  # (n_memories,)
        P: Any = logits if is_linear else _softmax(ops, logits, owners, sizes, n_empty)
        readings.append((u, P))
        u = u + _sum(ops, P[:, None] * memories[:, k + 1], sizes)

    def backprop(dY: OutT) -> InT:
        d_memories = xp.zeros_like(memories)
        du = dY
        for k in reversed(range(n_hops)):
            u, P = readings[k]
            d_read = du[owners]  # (n_memories, nO)
            d_memories[:, k + 1] += P[:, None] * d_read
            dP = (d_read * memories[:, k + 1]).sum(axis=1)  # (n_memories,)
            if not is_linear:
                mean = _sum(ops, (P * dP)[:, None], sizes)[:, 0]  # (n_examples,)
                dP = P * (dP - mean[owners])
            d_logits = dP[:, None]  # (n_memories, 1)
            d_memories[:, k] += d_logits * u[owners]
            du = du + _sum(ops, d_logits * memories[:, k], sizes)
        dX = xp.zeros_like(vectors)
        dX[memory] = d_memories
        dX[question, 0] += du
        return Ragged(dX.reshape(rows.shape), X.lengths)

    return u, backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    if X is not None:
        model.set_dim("nI", get_width(X))
        model.set_dim("nO", get_width(X) // (model.attrs["n_hops"] + 1))


def _sum(ops: Ops, X: Floats2d, lengths: Ints1d) -> Floats2d:
    """Return the sum of each example's rows; zeros for an example without rows."""
    if not X.shape[0]:
        return ops.alloc2f(lengths.shape[0], X.shape[1])
    return ops.reduce_sum(ops.as_contig(X), lengths)


def _softmax(ops: Ops, logits: Any, owners: Ints1d, sizes: Ints1d, n_empty: Any) -> Any:
    """Return the softmax over the memories of each example and its empty ones, whose logit is 0."""
    if not logits.shape[0]:
        return logits
    is_read = sizes > 0
    among = numpy.arange(is_read.sum()).repeat(sizes[is_read])
    among, n_empty = upload(ops, among, n_empty[is_read].astype("f"))
    highest = ops.reduce_max(logits[:, None], sizes[is_read])[0][:, 0]
    at_least_0 = ops.xp.maximum(highest, 0)
    highest = ops.xp.where(n_empty > 0, at_least_0, highest)
    P = ops.xp.exp(logits - highest[among])
    total = _sum(ops, P[:, None], sizes[is_read])[:, 0] + n_empty * ops.xp.exp(-at_least_0)
    return P / total[among]
