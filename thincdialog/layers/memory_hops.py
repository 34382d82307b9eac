"""Attention to memories in several hops, led by a question."""

from typing import Any, Callable, List, Optional, Tuple

import numpy
from thinc.api import Model
from thinc.types import Floats2d, Ragged
from thinc.util import get_width

from ..ops.bags import bag_numbers
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
    rows: Any = X.dataXd  # (n_rows, (n_hops + 1) * nO)
    lengths: Any = on_host(X.lengths)
    last, n_memories = lengths.cumsum() - 1, lengths - 1
    # The question of an example is also a memory, of zeros. Its weight in the softmax is the number
    # of empty memories.
    n_empty = numpy.maximum(model.attrs["n_memories"] - n_memories, n_memories == 0)
    question, owners, n_empty = upload(ops, last, bag_numbers(lengths), n_empty.astype("f"))
    vectors: Any = rows.reshape((rows.shape[0], n_hops + 1, model.get_dim("nO")))
    u = vectors[question, 0]  # (n_examples, nO)
    memories = vectors.copy()  # (n_rows, n_hops + 1, nO)
    memories[question] = 0.0
    is_linear = is_train and 1 <= training_step(ops) <= model.attrs["linear_start"]
    readings: List[Tuple[Any, Any]] = []
    for k in range(n_hops):
        P: Any = (u[owners] * memories[:, k]).sum(axis=1)  # (n_rows,)
        if not is_linear:
            P[question] = xp.where(n_empty > 0, xp.float32(0.0), xp.float32(-numpy.inf))
            P = xp.exp(P - ops.reduce_max(P[:, None], lengths)[0][:, 0][owners])
            P[question] *= n_empty
            P /= ops.reduce_sum(P[:, None], lengths)[:, 0][owners]
        readings.append((u, P))
        u = u + ops.reduce_sum(P[:, None] * memories[:, k + 1], lengths)

    def backprop(dY: OutT) -> InT:
        dX = xp.zeros_like(memories)
        du = dY
        for k in reversed(range(n_hops)):
            u, P = readings[k]
            d_read = du[owners]  # (n_rows, nO)
            dX[:, k + 1] += P[:, None] * d_read
            dP = (d_read * memories[:, k + 1]).sum(axis=1)  # (n_rows,)
            if not is_linear:
                mean = ops.reduce_sum((P * dP)[:, None], lengths)[:, 0]  # (n_examples,)
                dP = P * (dP - mean[owners])
            d_logits = dP[:, None]  # (n_rows, 1)
            dX[:, k] += d_logits * u[owners]
            du = du + ops.reduce_sum(d_logits * memories[:, k], lengths)
        dX[question] = 0.0
        dX[question, 0] = du
        return Ragged(dX.reshape(rows.shape), X.lengths)

    return u, backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    if X is not None:
        model.set_dim("nI", get_width(X))
        model.set_dim("nO", get_width(X) // (model.attrs["n_hops"] + 1))
