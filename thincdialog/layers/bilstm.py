"""Two LSTMs over each sequence, one from either end."""

from typing import Any, Callable, List, NamedTuple, Optional, Tuple, cast

from thinc.api import Model, Ops
from thinc.initializers import glorot_uniform_init
from thinc.types import Floats2d, Floats3d, Ints1d, Ragged
from thinc.util import ArrayInfo, get_width

from ..registry import registry

InT = Ragged
OutT = Ragged


@registry.layers("thincdialog.BiLSTM.v1")
def BiLSTM(nO: int, nI: Optional[int] = None) -> Model[InT, OutT]:
    """Each token's vector, aware of everything before it (first half of the columns)
    and after it (second half). No padding: a step computes the sequences that are long
    enough for it. (Thinc's LSTM.v1 has wrong gradients on the CPU in 8.3.)

        i, f, o = sigmoid(W x_t + U h_(t-1) + b);  g = tanh(likewise)
        c_t = f c_(t-1) + i g;  h_t = o tanh(c_t)

    nO (int): Width of the output, even.
    nI (Optional[int]): Width of the input; from the data if None.
    X (Ragged): Shape (n_tokens, nI), float32.
    RETURNS (Model[Ragged, Ragged]): Output shape (n_tokens, nO).
    RAISES (ValueError): If nO is odd.
    SOURCE: Graves and Schmidhuber 2005, https://doi.org/10.1016/j.neunet.2005.06.042
    """
    if nO % 2:
        raise ValueError(f"BiLSTM: nO = {nO}, but it must be even: half for each direction")
    return Model(
        "bilstm",
        forward,
        init=init,
        dims={"nO": nO, "nI": nI, "nH": nO // 2},
        params={"W": None, "U": None, "b": None},
    )


def forward(model: Model[InT, OutT], Xr: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops, nH = model.ops, model.get_dim("nH")
    X = cast(Floats2d, Xr.dataXd)
    if not X.shape[0]:
        empty = Ragged(ops.alloc2f(0, 2 * nH), Xr.lengths)
        return empty, lambda dYr: Ragged(ops.alloc2f(0, model.get_dim("nI")), Xr.lengths)
    W = cast(Floats3d, model.get_param("W"))
    U = cast(Floats3d, model.get_param("U"))
    b = cast(Floats2d, model.get_param("b"))
    sizes, orders = _steps(ops, Xr.lengths)
    Y = ops.alloc2f(X.shape[0], 2 * nH)
    runs: List[_Run] = []
    for side, order in enumerate(orders):
        packed = X[order]  # (n_tokens, nI), step by step
        run = _forward(ops, ops.affine(packed, W[side], b[side]), U[side], sizes)
        Y[order, side * nH : (side + 1) * nH] = run.H
        runs.append(run)
    info = ArrayInfo.from_array(Y)

    def backprop(dYr: OutT) -> InT:
        dY = cast(Floats2d, dYr.dataXd)
        info.check_consistency(dY)
        dX = ops.xp.zeros_like(X)
        dW, dU, db = ops.xp.zeros_like(W), ops.xp.zeros_like(U), ops.xp.zeros_like(b)
        for side, order in enumerate(orders):
            d_packed = dY[order, side * nH : (side + 1) * nH]
            dG, before = _backward(ops, d_packed, U[side], runs[side], sizes)
            dW[side] = ops.gemm(dG, X[order], trans1=True)
            dU[side] = ops.gemm(dG, before, trans1=True)
            db[side] = dG.sum(axis=0)
            dX[order] += ops.gemm(dG, W[side])
        model.inc_grad("W", dW)
        model.inc_grad("U", dU)
        model.inc_grad("b", db)
        return Ragged(dX, Xr.lengths)

    return Ragged(Y, Xr.lengths), backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    if X is not None:
        model.set_dim("nI", get_width(X))
    ops, nH, nI = model.ops, model.get_dim("nH"), model.get_dim("nI")
    W: Any = ops.alloc3f(2, 4 * nH, nI)
    U: Any = ops.alloc3f(2, 4 * nH, nH)
    for side in range(2):
        for gate in range(4):
            rows = slice(gate * nH, (gate + 1) * nH)
            W[side, rows] = glorot_uniform_init(ops, (nH, nI))
            U[side, rows] = glorot_uniform_init(ops, (nH, nH))
    b = ops.alloc2f(2, 4 * nH)
    b[:, nH : 2 * nH] = 1  # remember at first
    model.set_param("W", W)
    model.set_param("U", U)
    model.set_param("b", b)


class _Run(NamedTuple):
    """What one direction computed, packed step by step: shape (n_tokens, ...)."""

    G: Floats2d  # gates i, f, o, g side by side: (n_tokens, 4 * nH)
    C: Floats2d  # cells
    H: Floats2d  # outputs


def _steps(ops: Ops, lengths: Ints1d) -> Tuple[List[int], List[Any]]:
    """Sequences in each step, and for both directions the tokens in the order of steps
    (within a step, longer sequences first)."""
    xp = ops.xp
    by_length = xp.argsort(-lengths, kind="stable")
    longest = int(lengths.max())
    steps = xp.arange(longest)[:, None]
    is_there = steps < lengths[by_length][None]  # (n_steps, n_sequences)
    ends = xp.cumsum(lengths)
    firsts = (ends - lengths)[by_length][None]
    forwards = (firsts + steps)[is_there]
    backwards = (ends[by_length][None] - 1 - steps)[is_there]
    sizes: List[int] = ops.to_numpy(is_there.sum(axis=1)).tolist()
    return sizes, [forwards, backwards]


def _forward(ops: Ops, G: Floats2d, U: Floats2d, sizes: List[int]) -> _Run:
    """Run over all steps; G holds W x + b and is changed in place to the gates."""
    xp, nH = ops.xp, U.shape[1]
    C, H = ops.alloc2f(G.shape[0], nH), ops.alloc2f(G.shape[0], nH)
    start, h, c = 0, None, None
    for n in sizes:
        now = slice(start, start + n)
        gates = G[now]
        if h is not None:
            gates += ops.gemm(h[:n], U, trans2=True)
        _sigmoid(xp, gates[:, : 3 * nH])
        xp.tanh(gates[:, 3 * nH :], out=gates[:, 3 * nH :])
        i, f, o, g = (gates[:, k * nH : (k + 1) * nH] for k in range(4))
        xp.multiply(i, g, out=C[now])
        if c is not None:
            C[now] += f * c[:n]
        xp.multiply(o, xp.tanh(C[now]), out=H[now])
        h, c = H[now], C[now]
        start += n
    return _Run(G, C, H)


def _backward(
    ops: Ops, dH: Floats2d, U: Floats2d, run: _Run, sizes: List[int]
) -> Tuple[Floats2d, Floats2d]:
    """Gradient before the gates' activation, and the outputs of the step before."""
    xp, nH = ops.xp, U.shape[1]
    dG, before = xp.zeros_like(run.G), xp.zeros_like(run.H)
    dh, dc = ops.alloc2f(sizes[0], nH), ops.alloc2f(sizes[0], nH)
    stop = run.H.shape[0]
    for step in reversed(range(len(sizes))):
        n = sizes[step]
        now = slice(stop - n, stop)
        i, f, o, g = (run.G[now, k * nH : (k + 1) * nH] for k in range(4))
        tanh_c = xp.tanh(run.C[now])
        dh_now = dh[:n] + dH[now]
        dc_now = dc[:n] + dh_now * o * (1 - tanh_c * tanh_c)
        d_gates = dG[now]
        d_gates[:, :nH] = dc_now * g * i * (1 - i)
        d_gates[:, 2 * nH : 3 * nH] = dh_now * tanh_c * o * (1 - o)
        d_gates[:, 3 * nH :] = dc_now * i * (1 - g * g)
        if step:
            first = stop - n - sizes[step - 1]
            last = slice(first, first + n)
            before[now] = run.H[last]
            d_gates[:, nH : 2 * nH] = dc_now * run.C[last] * f * (1 - f)
            dh[:n] = ops.gemm(d_gates, U)
            dc[:n] = dc_now * f
        stop -= n
    return dG, before


def _sigmoid(xp: Any, X: Floats2d) -> None:
    """In place, without overflow."""
    X *= 0.5
    xp.tanh(X, out=X)
    X += 1
    X *= 0.5
