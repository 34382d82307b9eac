"""A transformer block: attention and a feed-forward net, each with a residual connection."""

from typing import Callable, Literal, Optional, Tuple, cast

from thinc.api import Gelu, Linear, Model, Relu, chain
from thinc.types import Floats2d, Ragged

from ..registry import registry
from .dropout import CheckedDropout
from .normalise import LayerNorm
from .self_attention import Positions, SelfAttention
from .swiglu import SwiGLU

InT = Ragged
OutT = Ragged
Activation = Literal["gelu", "relu", "swiglu"]
_HIDDEN = {"gelu": Gelu, "relu": Relu, "swiglu": SwiGLU}


@registry.layers("thincdialog.TransformerBlock.v1")
def TransformerBlock(
    nO: int,
    *,
    n_heads: int = 4,
    nH: Optional[int] = None,
    activation: Activation = "gelu",
    positions: Positions = "rotary",
    dropout: float = 0.0,
) -> Model[InT, OutT]:
    """Apply self-attention, then a feed-forward net to each token. Each input is normalised first,
    and each output is added to the input.

        H = X + dropout(attention(layer_norm(X)))
        Y = H + dropout(W2 activation(W1 layer_norm(H) + b1) + b2)

    nO (int): Width of input and output.
    n_heads (int): Number of attention heads.
    nH (Optional[int]): Width of the net's hidden layer. If None, 4 * nO. With "swiglu", 8 * nO / 3,
        rounded up to a multiple of 8, which gives about the same number of weights.
    activation (str): Activation of the hidden layer: "gelu", "relu" or "swiglu" (see ``SwiGLU``).
    positions (str): See ``SelfAttention``.
    dropout (float): Probability of zeroing a value before it is added, at least 0.0 and below 1.0.
    X (Ragged): Shape (n_tokens, nO), float32.
    RETURNS (Model[Ragged, Ragged]): Output shape (n_tokens, nO).
    SOURCE: Xiong et al. 2020 (normalisation first), https://arxiv.org/abs/2002.04745
    """
    nH = nH or (-(-nO // 3) * 8 if activation == "swiglu" else 4 * nO)
    hidden: Model = _HIDDEN[activation](nH, nO)
    net: Model = chain(LayerNorm(nO), hidden, Linear(nO, nH), CheckedDropout(dropout))
    return Model(
        "transformer_block",
        forward,
        init=init,
        layers=[LayerNorm(nO), SelfAttention(nO, n_heads, positions), CheckedDropout(dropout), net],
        dims={"nO": nO, "nI": nO},
    )


def forward(model: Model[InT, OutT], Xr: InT, is_train: bool) -> Tuple[OutT, Callable]:
    normalise, attention, drop, net = model.layers
    X, lengths = cast(Floats2d, Xr.dataXd), Xr.lengths
    normal, backprop_normalise = normalise(X, is_train)  # (n_tokens, nO), like all arrays below
    attended, backprop_attention = attention(Ragged(normal, lengths), is_train)
    dropped, backprop_drop = drop(attended.dataXd, is_train)
    H = X + dropped
    added, backprop_net = net(H, is_train)
    Y = H + added

    def backprop(dYr: OutT) -> InT:
        dY = cast(Floats2d, dYr.dataXd)
        dH = dY + backprop_net(dY)
        d_attended = Ragged(backprop_drop(dH), lengths)
        d_normal = backprop_attention(d_attended).dataXd
        return Ragged(dH + backprop_normalise(d_normal), lengths)

    return Ragged(Y, lengths), backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    normalise, attention, _, net = model.layers
    attention.initialize()
    for layer in (normalise, net):
        layer.initialize(X=model.ops.alloc2f(1, model.get_dim("nO")))
