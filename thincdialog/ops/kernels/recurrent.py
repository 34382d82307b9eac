"""An LSTM in one direction over packed sequences, all steps in one call.

Rows lie step by step. ``sizes`` (int64) is the number of rows of each step, never more than in the
step before, because longer sequences come first. Gates i, f, o, g lie side by side.
"""

from typing import Any

import numpy as np

from .elementary import sigmoid, tanh
from .kernel import kernel
from .products import add_product

_ONE = np.float32(1)


@kernel
def _gates(gates: Any, c_before: Any, c: Any, t: Any, h: Any) -> None:
    n = h.shape[0]
    i, f, o, g = gates[:n], gates[n : 2 * n], gates[2 * n : 3 * n], gates[3 * n :]
    # Separate loops over few arrays each, because the compiler can vectorise them.
    for j in range(gates.shape[0] - n):
        gates[j] = sigmoid(gates[j])
    for j in range(g.shape[0]):
        g[j] = tanh(g[j])
    for j in range(n):
        c[j] = f[j] * c_before[j] + i[j] * g[j]
    for j in range(n):
        t[j] = tanh(c[j])
        h[j] = o[j] * t[j]


@kernel
def lstm(G: Any, Ut: Any, sizes: Any, C: Any, T: Any, H: Any) -> None:
    """Run all steps, starting with outputs and cells of 0.

    G (Floats2d): W x + b, shape (n_rows, 4 nH), float32; overwritten with the gates.
    Ut (Floats2d): Shape (nH, 4 nH).
    C (Floats2d): Cells, shape (n_rows, nH); written.
    T (Floats2d): tanh of the cells; written.
    H (Floats2d): Outputs; written.
    """
    (n_hidden, wide), outputs, gates = Ut.shape, H.reshape(-1), G.reshape(-1)
    zeros = np.zeros(n_hidden, np.float32)
    start = last = 0
    for step in range(sizes.shape[0]):
        n = sizes[step]
        stop = start + n
        if step:
            before, after = (outputs, last * n_hidden, n_hidden), (gates, start * wide, wide)
            add_product(before, (Ut.reshape(-1), 0, wide), after, n, n_hidden, wide)
        for k in range(n):
            r = start + k
            _gates(G[r], C[last + k] if step else zeros, C[r], T[r], H[r])
        last, start = start, stop


@kernel
def _backprop_gates(
    dh: Any, d_out: Any, dc: Any, gates: Any, c_before: Any, t: Any, d_gates: Any
) -> None:
    n = dh.shape[0]
    i, f, o, g = gates[:n], gates[n : 2 * n], gates[2 * n : 3 * n], gates[3 * n :]
    di, df, do = d_gates[:n], d_gates[n : 2 * n], d_gates[2 * n : 3 * n]
    dg = d_gates[3 * n :]
    for j in range(n):
        out = dh[j] + d_out[j]
        do[j] = out * t[j] * o[j] * (_ONE - o[j])
        dc[j] += out * o[j] * (_ONE - t[j] * t[j])
    for j in range(n):
        di[j] = dc[j] * g[j] * i[j] * (_ONE - i[j])
        dg[j] = dc[j] * i[j] * (_ONE - g[j] * g[j])
    for j in range(n):
        df[j] = dc[j] * c_before[j] * f[j] * (_ONE - f[j])
        dc[j] *= f[j]


@kernel
def backprop_lstm(
    dH: Any, U: Any, sizes: Any, G: Any, C: Any, T: Any, H: Any, dG: Any, before: Any
) -> None:
    """Compute the gradient through all steps.

    dH (Floats2d): Gradient of the outputs, shape (n_rows, nH).
    U (Floats2d): Shape (4 nH, nH).
    sizes, G, C, T, H: Arguments of ``lstm`` after its call.
    dG (Floats2d): Gradient before the gates' activation, shape (n_rows, 4 nH); written.
    before (Floats2d): Output of the step before, shape (n_rows, nH); written.
    """
    n_first = sizes[0] if sizes.shape[0] else 0
    wide, n_hidden = U.shape
    zeros = np.zeros(n_hidden, np.float32)
    d_out = np.zeros((n_first, n_hidden), np.float32)
    dc = np.zeros((n_first, n_hidden), np.float32)
    stop = dH.shape[0]
    for step in range(sizes.shape[0] - 1, -1, -1):
        n = sizes[step]
        start = stop - n
        last = start - sizes[step - 1] if step else 0
        for k in range(n):
            r = start + k
            before[r] = H[last + k] if step else zeros
            c_before = C[last + k] if step else zeros
            _backprop_gates(dH[r], d_out[k], dc[k], G[r], c_before, T[r], dG[r])
        if step:
            d_out[:n] = 0
            given, taken = (dG.reshape(-1), start * wide, wide), (d_out.reshape(-1), 0, n_hidden)
            add_product(given, (U.reshape(-1), 0, n_hidden), taken, n, wide, n_hidden)
        stop = start
