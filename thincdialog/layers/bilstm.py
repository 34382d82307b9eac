"""Two LSTMs over each sequence, one from either end."""

from typing import Any, Callable, List, Optional, Tuple, cast

import numpy
from thinc.api import Model, Ops
from thinc.initializers import glorot_uniform_init
from thinc.types import Floats2d, Floats3d, Ints1d, Ragged
from thinc.util import ArrayInfo, get_width

from ..ops.compiled_ops import LSTMRun
from ..ops.dialog_cupy_ops import DialogCupyOps
from ..ops.dialog_fast_ops import DialogFastOps
from ..ops.known_numbers import derived, on_host
from ..registry import registry
from .gradients import gradient

InT = Ragged
OutT = Ragged
# Gates computed at once: what is read and written of them stays in a core's cache.
_FLOATS = 32768


@registry.layers("thincdialog.BiLSTM.v1")
def BiLSTM(nO: int, nI: Optional[int] = None) -> Model[InT, OutT]:
    """Each token's vector, aware of everything before it (first half of the columns)
    and after it (second half). No padding: a step computes the sequences that are long
    enough for it. (Thinc's ``LSTM.v1`` has wrong
    gradients on the CPU in 8.3, so configs with it are refused.)

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
    if isinstance(ops, DialogCupyOps):
        return _forward_on_device(model, ops, X, Xr.lengths)
    W = cast(Floats3d, model.get_param("W"))  # (2, 4 * nH, nI)
    U = cast(Floats3d, model.get_param("U"))  # (2, 4 * nH, nH)
    b = cast(Floats2d, model.get_param("b"))  # (2, 4 * nH)
    # n_steps numbers; 2 times (n_tokens,); (n_tokens - n_sequences,)
    sizes, orders, previous = _steps(ops, Xr.lengths)
    # Kernels run all steps in one call; their products are never exact.
    kernels = ops if isinstance(ops, DialogFastOps) and not ops.has_exact_products else None
    half = _halves(ops, nH) if kernels is None else ops.xp.float32(1)
    G = ops.alloc3f(2, X.shape[0], 4 * nH)  # (2, n_tokens, 4 * nH), in the order of steps
    for side, order in enumerate(orders):
        G[side] = ops.affine(X[order], W[side] * half, (b[side] * half.T).ravel())
    if kernels is None:
        run = _forward(ops, G, U * half, sizes)
    else:
        sides: Any = zip(*(kernels.lstm_steps(G[side], U[side], sizes) for side in range(2)))
        run = LSTMRun(*sides)  # pairs of arrays
    Y = ops.alloc2f(X.shape[0], 2 * nH)  # (n_tokens, nO)
    for side, order in enumerate(orders):
        Y[order, side * nH : (side + 1) * nH] = run.H[side]
    info = ArrayInfo.from_array(Y)

    def backprop(dYr: OutT) -> InT:
        dY = cast(Floats2d, dYr.dataXd)
        info.check_consistency(dY)
        dH = ops.alloc3f(2, X.shape[0], nH)  # in the order of steps
        for side, order in enumerate(orders):
            dH[side] = dY[order, side * nH : (side + 1) * nH]
        # (2, n_tokens, 4 * nH), (2, n_tokens, nH)
        dG, before = _backward(ops, dH, U, run, sizes, previous, kernels)
        dW, dU = ops.xp.empty_like(W), ops.xp.empty_like(U)
        dX = ops.xp.zeros_like(X)
        for side, order in enumerate(orders):
            dW[side] = ops.gemm(dG[side], X[order], trans1=True)  # (4 * nH, nI)
            dU[side] = ops.gemm(dG[side], before[side], trans1=True)  # (4 * nH, nH)
            dX[order] += ops.gemm(dG[side], W[side])  # (n_tokens, nI)
        model.inc_grad("W", dW)
        model.inc_grad("U", dU)
        model.inc_grad("b", ops.xp.stack([dG[side].sum(axis=0) for side in range(2)]))
        return Ragged(dX, Xr.lengths)

    return Ragged(Y, Xr.lengths), backprop


def _forward_on_device(
    model: Model[InT, OutT], ops: DialogCupyOps, X: Floats2d, lengths: Ints1d
) -> Tuple[OutT, Callable]:
    W, U, b = map(model.get_param, ("W", "U", "b"))
    Y, backprop_steps = ops.bilstm(X, W, U, b, lengths)  # (n_tokens, nO)
    info = ArrayInfo.from_array(Y)

    def backprop(dYr: OutT) -> InT:
        info.check_consistency(dYr.dataXd)
        gradients = (gradient(model, name) for name in ("W", "U", "b"))
        return Ragged(backprop_steps(dYr.dataXd, *gradients), lengths)

    return Ragged(Y, lengths), backprop


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


def _steps(ops: Ops, lengths: Ints1d) -> Tuple[List[int], List[Any], Any]:
    """Sequences in each step, for both directions the tokens in the order of steps (within a
    step, longer sequences first), and the row before of each row that has one."""
    sizes, forwards, backwards, previous = derived(ops, _step_orders, lengths)
    return on_host(ops, sizes).tolist(), [forwards, backwards], previous


def _step_orders(lengths: Any) -> Tuple[Any, ...]:
    by_length = numpy.argsort(-lengths, kind="stable")
    steps = numpy.arange(lengths.max())[:, None]
    is_there = steps < lengths[by_length][None]  # (n_steps, n_sequences)
    ends = numpy.cumsum(lengths)
    firsts = (ends - lengths)[by_length][None]
    sizes = is_there.sum(axis=1)
    # Of each row but those of the first step, the same sequence one step before.
    previous = numpy.arange(sizes[0], sizes.sum()) - sizes[:-1].repeat(sizes[1:])
    backwards = (ends[by_length][None] - 1 - steps)[is_there]
    return sizes, (firsts + steps)[is_there], backwards, previous


def _halves(ops: Ops, nH: int) -> Any:
    """sigmoid(x) = (1 + tanh(x / 2)) / 2, so that one tanh serves all gates."""
    half = ops.xp.full((4 * nH, 1), 0.5, dtype="f")
    half[3 * nH :] = 1
    return half


def _forward(ops: Ops, G: Floats3d, U: Floats3d, sizes: List[int]) -> LSTMRun:
    """Run over all steps in both directions at once: arrays of shape (2, n_tokens, ...). G
    holds W x + b and is changed in place to the gates."""
    xp, nH = ops.xp, U.shape[2]
    C, T, H = (ops.alloc3f(2, G.shape[1], nH) for _ in range(3))
    start = 0
    last: Any = None
    for n in sizes:
        now = slice(start, start + n)
        gates, cells = G[:, now], C[:, now]  # (2, n, 4 * nH), (2, n, nH)
        if last is not None:
            for side in range(2):
                gates[side] += ops.gemm(H[side, last][:n], U[side], trans2=True)
        xp.tanh(gates, out=gates)
        smooth = gates[:, :, : 3 * nH]
        smooth *= 0.5
        smooth += 0.5
        xp.multiply(gates[:, :, :nH], gates[:, :, 3 * nH :], out=cells)
        if last is not None:
            cells += gates[:, :, nH : 2 * nH] * C[:, last][:, :n]
        xp.tanh(cells, out=T[:, now])
        xp.multiply(gates[:, :, 2 * nH : 3 * nH], T[:, now], out=H[:, now])
        last = now
        start += n
    return LSTMRun(G, C, T, H)


def _backward(
    ops: Ops,
    dH: Floats3d,
    U: Floats3d,
    run: LSTMRun,
    sizes: List[int],
    previous: Any,
    kernels: Any,
) -> Any:
    """Gradient before the gates' activation, and outputs of the step before; changes dH."""
    if kernels is not None:
        runs = [LSTMRun(*arrays) for arrays in zip(*run)]  # of each direction
        return zip(*map(kernels.backprop_lstm_steps, dH, U, [sizes] * 2, runs))
    xp, nH = ops.xp, U.shape[2]
    first = sizes[0]
    before = xp.zeros_like(run.H)
    before[:, first:] = run.H[:, previous]
    dG = xp.empty_like(run.G)
    dh, dc = ops.alloc3f(2, first, nH), ops.alloc3f(2, first, nH)
    for start, part in reversed(_short_runs(sizes, _FLOATS // (8 * nH))):
        stop = start + sum(part)
        to_cell, forget = _factors(xp, run, previous, slice(start, stop), first, dG)
        for n in reversed(part):
            stop -= n
            now = slice(stop, stop + n)
            here = slice(stop - start, stop - start + n)
            # (2, n, nH) twice, (2, n, 4 * nH)
            d_out, d_cell, d_gates = dH[:, now], dc[:, :n], dG[:, now]
            d_out += dh[:, :n]
            d_cell += d_out * to_cell[:, here]
            d_gates[:, :, :nH] *= d_cell
            d_gates[:, :, nH : 2 * nH] *= d_cell
            d_gates[:, :, 2 * nH : 3 * nH] *= d_out
            d_gates[:, :, 3 * nH :] *= d_cell
            if stop:
                for side in range(2):
                    dh[side, :n] = ops.gemm(d_gates[side], U[side])
                d_cell *= forget[:, here]
    return dG, before


def _short_runs(sizes: List[int], most: int) -> List[Tuple[int, List[int]]]:
    """Cut steps into runs of at most so many rows, or one step: what is no recurrence is
    computed for a run at once. Of each its first row, and the sizes of its steps."""
    runs: List[Tuple[int, List[int]]] = []
    start = n_rows = 0
    for n in sizes:
        if runs and n_rows + n <= most:
            runs[-1][1].append(n)
            n_rows += n
        else:
            runs.append((start, [n]))
            n_rows = n
        start += n
    return runs


def _factors(
    xp: Any, run: LSTMRun, previous: Any, rows: slice, first: int, dG: Floats3d
) -> Tuple[Any, Any]:
    """Write into some rows of dG what to multiply the gradient of the cell (for o, of the
    output) with; RETURNS the factor from output to cell, and the forget gates."""
    nH = run.H.shape[2]
    i, f, o, g = (run.G[:, rows, gate * nH : (gate + 1) * nH] for gate in range(4))
    T: Any = run.T[:, rows]
    factors: Any = dG[:, rows]
    xp.multiply(g * i, 1 - i, out=factors[:, :, :nH])
    if rows.start:
        C_before = run.C[:, previous[rows.start - first : rows.stop - first]]
        xp.multiply(C_before * f, 1 - f, out=factors[:, :, nH : 2 * nH])
    else:
        n_later = rows.stop - first
        factors[:, :first, nH : 2 * nH] = 0
        later = run.C[:, previous[:n_later]] * f[:, first:]
        xp.multiply(later, 1 - f[:, first:], out=factors[:, first:, nH : 2 * nH])
    xp.multiply(T * o, 1 - o, out=factors[:, :, 2 * nH : 3 * nH])
    xp.multiply(i, 1 - g * g, out=factors[:, :, 3 * nH :])
    return o * (1 - T * T), f
