"""Two LSTMs over each sequence, one in each direction."""

from typing import Any, Callable, Optional, Tuple, cast

from thinc.api import Model
from thinc.initializers import glorot_uniform_init
from thinc.types import Floats2d, Ragged
from thinc.util import get_width

from ..ops.bilstm import bilstm
from ..registry import registry

InT = Ragged
OutT = Ragged


@registry.layers("thincdialog.BiLSTM.v1")
def BiLSTM(nO: int, nI: Optional[int] = None) -> Model[InT, OutT]:
    """Run two LSTMs over each sequence, so that each token's vector depends on the tokens before it
    (first half of the columns) and after it (second half). There is no padding: each step computes
    only the sequences that are long enough for it. (In Thinc 8.3, ``LSTM.v1`` has wrong gradients
    on the CPU, so configs with it are refused.)

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
    ops, lengths = model.ops, Xr.lengths
    X = cast(Floats2d, Xr.dataXd)
    if not X.shape[0]:
        empty = Ragged(ops.alloc2f(0, model.get_dim("nO")), lengths)
        return empty, lambda dYr: Ragged(ops.alloc2f(0, model.get_dim("nI")), lengths)
    weights: Any = [model.get_param(name) for name in "WUb"]
    Y, backprop_lstm = bilstm(ops, X, lengths, *weights)  # (n_tokens, nO)

    def backprop(dYr: OutT) -> InT:
        dY = cast(Floats2d, dYr.dataXd)
        dX, *gradients = cast(Any, backprop_lstm(dY))
        for name, gradient in zip("WUb", gradients):
            model.inc_grad(name, gradient)
        return Ragged(dX, lengths)

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
    b[:, nH : 2 * nH] = 1  # Forget gates start open, so that cells remember.
    model.set_param("W", W)
    model.set_param("U", U)
    model.set_param("b", b)
