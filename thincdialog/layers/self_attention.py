"""Self-attention: each token attends to the tokens of its sequence."""

from typing import Callable, Literal, Optional, Tuple, cast

from thinc.api import Linear, Model
from thinc.types import Floats2d, Ragged

from ..ops.attention import attend, within
from ..ops.bags import places_in_bags
from ..ops.rotation import rotate
from ..registry import registry

InT = Ragged
OutT = Ragged
Positions = Literal["rotary", "none"]


@registry.layers("thincdialog.SelfAttention.v1")
def SelfAttention(nO: int, n_heads: int = 4, positions: Positions = "rotary") -> Model[InT, OutT]:
    """Apply multi-head attention of each token to all tokens of its sequence.

    There is no padding: sequences of the same length are computed together.

    nO (int): Width of input and output.
    n_heads (int): Number of heads, which share the width.
    positions (str): "rotary" rotates queries and keys by the token's position, so that heads see
        the distance between tokens; "none" ignores positions.
    X (Ragged): Shape (n_tokens, nO), float32.
    RETURNS (Model[Ragged, Ragged]): Output shape (n_tokens, nO).
    RAISES (ValueError): If the width is not a multiple of the number of heads, or if the width of a
        head is odd with "rotary".
    SOURCE: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762
    """
    if n_heads < 1 or nO % n_heads:
        raise ValueError(f"SelfAttention: width {nO} is not a multiple of n_heads = {n_heads}")
    if positions == "rotary" and (nO // n_heads) % 2:
        raise ValueError(f"SelfAttention: rotary heads have an even width, not {nO // n_heads}")
    return Model(
        "self_attention",
        forward,
        init=init,
        layers=[Linear(3 * nO, nO), Linear(nO, nO)],
        dims={"nO": nO, "nI": nO},
        attrs={"n_heads": n_heads, "positions": positions},
    )


def forward(model: Model[InT, OutT], Xr: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops, n_heads = model.ops, model.attrs["n_heads"]
    project, mix = model.layers
    X, lengths = cast(Floats2d, Xr.dataXd), Xr.lengths
    QKV, backprop_project = project(X, is_train)  # (n_tokens, 3 * nO)
    back: Optional[Callable] = None
    if model.attrs["positions"] == "rotary":
        back = rotate(ops, QKV, places_in_bags(lengths), n_heads)
    nO = model.get_dim("nO")
    Q, K, V = QKV[:, :nO], QKV[:, nO : 2 * nO], QKV[:, 2 * nO :]
    # (n_tokens, nO)
    H, backprop_attend = attend(ops, Q, K, V, within(lengths), n_heads, is_train=is_train)
    Y, backprop_mix = mix(H, is_train)  # (n_tokens, nO)

    def backprop(dYr: OutT) -> InT:
        dY = cast(Floats2d, dYr.dataXd)
        # (n_tokens, 3 * nO)
        dQKV = ops.xp.concatenate(backprop_attend(backprop_mix(dY)), axis=1)
        if back is not None:
            back(dQKV)
        return Ragged(backprop_project(dQKV), lengths)

    return Ragged(Y, lengths), backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    for layer in model.layers:
        layer.initialize()
