"""Two LSTMs over each of several sequences, one in each direction."""

from typing import Any, Callable, List, NamedTuple, Tuple

import numpy
from thinc.api import Ops
from thinc.types import Floats2d, Floats3d, Ints1d

from .compiled import load_kernels
from .devices import on_host, upload
from .dialog_cupy_ops import DialogCupyOps, starts_of
from .dialog_fast_ops import DialogFastOps
from .gpu import kernels

# The gradients of X, W, U and b.
Gradients = Tuple[Floats2d, Floats3d, Floats3d, Floats2d]


class _Run(NamedTuple):
    """Hold the arrays of an LSTM in two directions, in the order of steps.

    G (Floats3d): Gates i, f, o, g side by side, shape (2, n_rows, 4 nH).
    C (Floats3d): Cells, shape (2, n_rows, nH).
    T (Floats3d): tanh of the cells.
    H (Floats3d): Outputs.
    """

    G: Any
    C: Any
    T: Any
    H: Any


def bilstm(
    ops: Ops, X: Floats2d, lengths: Ints1d, W: Floats3d, U: Floats3d, b: Floats2d
) -> Tuple[Floats2d, Callable[[Floats2d], Gradients]]:
    """Run an LSTM in both directions over each sequence, with the outputs side by side. There is no
    padding: each step computes only the sequences that are long enough for it. On a GPU, one
    kernel runs all steps.

        i, f, o = sigmoid(W x_t + U h_(t-1) + b);  g = tanh(likewise)
        c_t = f c_(t-1) + i g;  h_t = o tanh(c_t)

    X (Floats2d): Rows of all sequences, one sequence after another, at least one row; shape
        (n_rows, nI).
    lengths (Ints1d): Number of rows of each sequence.
    W, U, b: Weights of each direction and gate (i, f, o, g), shapes (2, 4 nH, nI), (2, 4 nH, nH)
        and (2, 4 nH), float32.
    RETURNS (Tuple[Floats2d, Callable]): Y, shape (n_rows, 2 nH); and the function that maps the
        gradient of Y to those of X, W, U and b.
    SOURCE: Graves and Schmidhuber 2005, https://doi.org/10.1016/j.neunet.2005.06.042
    """
    lengths = on_host(lengths)  # type: ignore[assignment]
    if isinstance(ops, DialogCupyOps):
        return _bilstm_on_device(ops, X, lengths, W, U, b)
    nH = U.shape[2]
    # n_steps numbers; 2 times (n_rows,); (n_rows - n_sequences,)
    sizes, orders, previous = _steps(lengths)
    # The compiled kernel runs all steps in one call, but its products are never exact.
    is_one_call = isinstance(ops, DialogFastOps) and not ops.has_exact_products
    half: Any = ops.xp.float32(1) if is_one_call else _tanh_factors(ops, nH)
    G = ops.alloc3f(2, X.shape[0], 4 * nH)  # (2, n_rows, 4 * nH), in the order of steps
    for side, order in enumerate(orders):
        G[side] = ops.affine(X[order], W[side] * half, (b[side] * half.T).ravel())
    run = _forward_compiled(G, U, sizes) if is_one_call else _forward(ops, G, U * half, sizes)
    Y = ops.alloc2f(X.shape[0], 2 * nH)  # (n_rows, 2 * nH)
    for side, order in enumerate(orders):
        Y[order, side * nH : (side + 1) * nH] = run.H[side]

    def backprop(dY: Floats2d) -> Gradients:
        dH = ops.alloc3f(2, X.shape[0], nH)  # in the order of steps
        for side, order in enumerate(orders):
            dH[side] = dY[order, side * nH : (side + 1) * nH]
        # (2, n_rows, 4 * nH), (2, n_rows, nH)
        if is_one_call:
            dG, before = _backward_compiled(dH, U, run, sizes)
        else:
            dG, before = _backward(ops, dH, U, run, sizes, previous)
        dW, dU = ops.xp.empty_like(W), ops.xp.empty_like(U)
        dX = ops.xp.zeros_like(X)
        for side, order in enumerate(orders):
            dW[side] = ops.gemm(dG[side], X[order], trans1=True)  # (4 * nH, nI)
            dU[side] = ops.gemm(dG[side], before[side], trans1=True)  # (4 * nH, nH)
            dX[order] += ops.gemm(dG[side], W[side])  # (n_rows, nI)
        return dX, dW, dU, dG.sum(axis=1)

    return Y, backprop


def _bilstm_on_device(
    ops: Ops, X: Any, lengths: Any, W: Any, U: Any, b: Any
) -> Tuple[Any, Callable]:
    longest_first = numpy.argsort(-lengths, kind="stable").astype("i")
    sequences = upload(ops, longest_first, starts_of(lengths))
    nI, nH = W.shape[2], U.shape[2]
    weights = W.reshape((-1, nI))
    G = ops.gemm(X, weights, trans2=True)  # (n_rows, 8 nH)
    C, H = kernels.lstm(G, U, b, *sequences)

    def backprop(dY: Any) -> Gradients:
        # (n_rows, 8 nH), and for each row the values that W, U and b were multiplied by
        dG, Z = kernels.backprop_lstm(dY, X, (G, C, H), U, *sequences)
        D: Any = ops.gemm(dG, Z, trans1=True)
        D = D.reshape((2, 4 * nH, -1))
        dU = [D[side, :, nI + side * nH : nI + (side + 1) * nH] for side in range(2)]
        dW, db = D[:, :, :nI], D[:, :, nI + 2 * nH]
        return ops.gemm(dG, weights), dW, ops.xp.stack(dU), db

    return H.reshape((X.shape[0], -1)), backprop


def _steps(lengths: Any) -> Tuple[List[int], List[Any], Any]:
    """Return the number of sequences in each step; for each direction, the tokens in the order of
    steps (within a step, longer sequences first); and for each row after the first step, the row
    of the same sequence one step before."""
    by_length = numpy.argsort(-lengths, kind="stable")
    steps = numpy.arange(lengths.max())[:, None]
    is_there = steps < lengths[by_length][None]  # (n_steps, n_sequences)
    ends = numpy.cumsum(lengths)
    firsts = (ends - lengths)[by_length][None]
    sizes = is_there.sum(axis=1)
    # For each row after the first step, the row of the same sequence one step before.
    previous = numpy.arange(sizes[0], sizes.sum()) - sizes[:-1].repeat(sizes[1:])
    backwards = (ends[by_length][None] - 1 - steps)[is_there]
    return sizes.tolist(), [(firsts + steps)[is_there], backwards], previous


def _tanh_factors(ops: Ops, nH: int) -> Any:
    """Return factors that use sigmoid(x) = (1 + tanh(x / 2)) / 2, so that one tanh serves all
    gates."""
    half = ops.xp.full((4 * nH, 1), 0.5, dtype="f")
    half[3 * nH :] = 1
    return half


def _forward(ops: Ops, G: Floats3d, U: Floats3d, sizes: List[int]) -> _Run:
    """Run all steps in both directions at once, over arrays of shape (2, n_tokens, ...). G holds
    W x + b and is overwritten with the gates."""
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
    return _Run(G, C, T, H)


def _backward(
    ops: Ops,
    dH: Floats3d,
    U: Floats3d,
    run: _Run,
    sizes: List[int],
    previous: Any,
) -> Tuple[Any, Any]:
    """Return the gradient before the gates' activation, and the outputs of the step before; changes
    dH in place."""
    xp, nH = ops.xp, U.shape[2]
    first, stop = sizes[0], dH.shape[1]
    before = xp.zeros_like(run.H)
    before[:, first:] = run.H[:, previous]
    dG, to_cell, forget = _factors(xp, run, previous, first)
    dh, dc = ops.alloc3f(2, first, nH), ops.alloc3f(2, first, nH)
    for n in reversed(sizes):
        stop -= n
        now = slice(stop, stop + n)
        # (2, n, nH) twice, (2, n, 4 * nH)
        d_out, d_cell, d_gates = dH[:, now], dc[:, :n], dG[:, now]
        d_out += dh[:, :n]
        d_cell += d_out * to_cell[:, now]
        d_gates[:, :, :nH] *= d_cell
        d_gates[:, :, nH : 2 * nH] *= d_cell
        d_gates[:, :, 2 * nH : 3 * nH] *= d_out
        d_gates[:, :, 3 * nH :] *= d_cell
        if stop:
            for side in range(2):
                dh[side, :n] = ops.gemm(d_gates[side], U[side])
            d_cell *= forget[:, now]
    return dG, before


def _forward_compiled(G: Any, U: Any, sizes: List[int]) -> _Run:
    """Return the same as ``_forward``, for G and U as they are; a kernel runs all steps."""
    C, T, H = (numpy.empty((*G.shape[:2], U.shape[2]), dtype="f") for _ in range(3))
    Ut, steps = numpy.ascontiguousarray(U.transpose(0, 2, 1)), numpy.asarray(sizes, dtype="i8")
    for side in range(2):
        load_kernels("recurrent").lstm(G[side], Ut[side], steps, C[side], T[side], H[side])
    return _Run(G, C, T, H)


def _backward_compiled(dH: Any, U: Any, run: _Run, sizes: List[int]) -> Tuple[Any, Any]:
    dG, before = numpy.empty_like(run.G), numpy.empty_like(run.H)
    U, steps = numpy.ascontiguousarray(U), numpy.asarray(sizes, dtype="i8")
    for side in range(2):
        of_side = (each[side] for each in run)
        kernel = load_kernels("recurrent").backprop_lstm
        kernel(dH[side], U[side], steps, *of_side, dG[side], before[side])
    return dG, before


def _factors(xp: Any, run: _Run, previous: Any, first: int) -> Tuple[Any, Any, Any]:
    """Return the factors of the cell's gradient (for o, of the output's gradient) for each gate;
    the factors from output to cell; and the forget gates."""
    nH = run.H.shape[2]
    i, f, o, g = (run.G[:, :, gate * nH : (gate + 1) * nH] for gate in range(4))
    factors = xp.empty_like(run.G)
    xp.multiply(g * i, 1 - i, out=factors[:, :, :nH])
    factors[:, :first, nH : 2 * nH] = 0
    later = f[:, first:]
    xp.multiply(run.C[:, previous] * later, 1 - later, out=factors[:, first:, nH : 2 * nH])
    xp.multiply(run.T * o, 1 - o, out=factors[:, :, 2 * nH : 3 * nH])
    xp.multiply(i, 1 - g * g, out=factors[:, :, 3 * nH :])
    return factors, o * (1 - run.T * run.T), f
