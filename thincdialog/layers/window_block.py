"""A convolution with a residual connection."""

from typing import Callable, Optional, Tuple, cast

from thinc.api import Maxout, Model, chain
from thinc.types import Floats2d, Ragged

from ..registry import registry
from .dropout import CheckedDropout
from .normalise import LayerNorm

InT = Ragged
OutT = Ragged


@registry.layers("thincdialog.WindowBlock.v1")
def WindowBlock(
    nO: int, *, window_size: int = 1, n_pieces: int = 3, dropout: float = 0.0
) -> Model[InT, OutT]:
    """Apply a net to each token and its neighbours, and add the result to the token's vector.

        Y[t] = X[t] + dropout(layer_norm(maxout(W X[t-w .. t+w] + b)))

    nO (int): Width of input and output.
    window_size (int): The w above: neighbours on each side, 1 or more. Neighbours beyond the ends
        of the sequence are zero.
    n_pieces (int): Pieces of the maxout, 1 or more.
    dropout (float): Probability of zeroing a value of the net's output, at least 0.0 and below 1.0.
    X (Ragged): Shape (n_tokens, nO), float32.
    RETURNS (Model[Ragged, Ragged]): Output shape (n_tokens, nO).
    RAISES (ValueError): If window_size or n_pieces is below 1.
    SOURCE: the token-to-vector encoder of spaCy, https://spacy.io/api/architectures
    """
    if window_size < 1 or n_pieces < 1:
        raise ValueError(
            f"WindowBlock: window_size = {window_size} and n_pieces = {n_pieces} must be above 0"
        )
    nI = nO * (2 * window_size + 1)
    net: Model = chain(Maxout(nO, nI, n_pieces), LayerNorm(nO))
    return Model(
        "window_block",
        forward,
        init=init,
        layers=[chain(net, CheckedDropout(dropout))],
        dims={"nO": nO, "nI": nO},
        attrs={"window_size": window_size},
    )


def forward(model: Model[InT, OutT], Xr: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops, window_size = model.ops, model.attrs["window_size"]
    X = cast(Floats2d, Xr.dataXd)
    if not X.shape[0]:
        return Xr, lambda dYr: dYr
    # (n_tokens, nO * (2 * window_size + 1))
    windows = ops.seq2col(ops.as_contig(X), window_size, lengths=Xr.lengths)
    Y, backprop_net = model.layers[0](windows, is_train)  # (n_tokens, nO)
    Y = Y + X

    def backprop(dYr: OutT) -> InT:
        dY = cast(Floats2d, dYr.dataXd)
        d_windows = backprop_net(dY)  # shape as windows
        dX = ops.backprop_seq2col(d_windows, window_size, lengths=Xr.lengths)
        return Ragged(dX + dY, Xr.lengths)

    return Ragged(Y, Xr.lengths), backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    n_neighbours = 2 * model.attrs["window_size"]
    model.layers[0].initialize(X=model.ops.alloc2f(1, model.get_dim("nI") * (n_neighbours + 1)))
