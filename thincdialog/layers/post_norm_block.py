"""A transformer block with layer normalisation after attention and net, as in BERT."""

from typing import Callable, Literal, Optional, Tuple, cast

from thinc.api import Gelu, Linear, Model, Relu, chain
from thinc.types import Floats2d, Ragged
from thinc.util import ArrayInfo

from ..registry import registry
from .dropout import CheckedDropout
from .normalise import LayerNorm, add_and_normalise
from .self_attention import SelfAttention

InT = Ragged
OutT = Ragged
_HIDDEN = {"gelu": Gelu, "relu": Relu}


@registry.layers("thincdialog.PostNormBlock.v1")
def PostNormBlock(
    nO: int,
    *,
    n_heads: int = 4,
    nH: Optional[int] = None,
    activation: Literal["gelu", "relu"] = "gelu",
    dropout: float = 0.0,
    eps: float = 1e-12,
) -> Model[InT, OutT]:
    """Apply self-attention, then a feed-forward net to each token. Each output is added to the
    input, and the sum is normalised.

        H = layer_norm(X + dropout(attention(X)))
        Y = layer_norm(H + dropout(W2 activation(W1 H + b1) + b2))

    nO (int): Width of input and output.
    n_heads (int): Number of attention heads.
    nH (Optional[int]): Width of the net's hidden layer; 4 * nO if None.
    activation (str): Activation of the hidden layer: "gelu" or "relu".
    dropout (float): Probability of zeroing a value before it is added, at least 0.0 and below 1.0.
    eps (float): Added to the variance in layer normalisation.
    X (Ragged): Shape (n_tokens, nO), float32.
    RETURNS (Model[Ragged, Ragged]): Output shape (n_tokens, nO).
    SOURCE: Devlin et al. 2019, https://arxiv.org/abs/1810.04805
    """
    nH = nH or 4 * nO
    net: Model = chain(_HIDDEN[activation](nH, nO), Linear(nO, nH), CheckedDropout(dropout))
    attention = SelfAttention(nO, n_heads, "none")
    return Model(
        "post_norm_block",
        forward,
        init=init,
        layers=[attention, CheckedDropout(dropout), LayerNorm(nO, eps), net, LayerNorm(nO, eps)],
        dims={"nO": nO, "nI": nO},
    )


def forward(model: Model[InT, OutT], Xr: InT, is_train: bool) -> Tuple[OutT, Callable]:
    attention, drop, normalise, net, normalise_last = model.layers
    X, lengths = cast(Floats2d, Xr.dataXd), Xr.lengths
    attended, backprop_attention = attention(Xr, is_train)
    dropped, backprop_drop = drop(attended.dataXd, is_train)
    # (n_tokens, nO), like all arrays here
    H, backprop_normalise = add_and_normalise(normalise, X, cast(Floats2d, dropped))
    added, backprop_net = net(H, is_train)
    Y, backprop_last = add_and_normalise(normalise_last, H, added)
    info = ArrayInfo.from_array(Y)

    def backprop(dYr: OutT) -> InT:
        dY = cast(Floats2d, dYr.dataXd)
        info.check_consistency(dY)
        d_sum = backprop_last(dY)
        d_sum = backprop_normalise(d_sum + backprop_net(d_sum))
        dX = backprop_attention(Ragged(backprop_drop(d_sum), lengths)).dataXd
        return Ragged(d_sum + dX, lengths)

    return Ragged(Y, lengths), backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    attention, _, normalise, net, normalise_last = model.layers
    attention.initialize()
    for layer in (normalise, net, normalise_last):
        layer.initialize(X=model.ops.alloc2f(1, model.get_dim("nO")))
