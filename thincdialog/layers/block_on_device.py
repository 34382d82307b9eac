"""A transformer block in few kernels of a GPU."""

from typing import Any, Callable, Tuple

from thinc.api import Model
from thinc.types import Ragged
from thinc.util import ArrayInfo

from ..ops.gpu import kernels
from ..ops.rotation import token_places
from .dropout import rate_now
from .gradients import gradient


def forward_on_device(model: Model, Xr: Ragged, is_train: bool) -> Tuple[Ragged, Callable]:
    """What the layers of ``TransformerBlock`` compute one by one. What belongs together is one
    kernel: a bias and what follows it, a short cut and the normalisation behind it; and
    gradients of weights are added where they are gathered.

    model (Model): The block, on ``DialogCupyOps``.
    Xr (Ragged): With one token or more.
    """
    ops: Any = model.ops
    normalise, attention, drop, net = model.layers
    project, mix = attention.layers
    normalise_net, hidden, out, drop_net = net.layers
    X: Any = ops.as_contig(Xr.dataXd)
    lengths, n_heads = Xr.lengths, attention.attrs["n_heads"]
    half, turns = X.shape[1] // (2 * n_heads), None
    if attention.attrs["positions"] == "rotary":
        turns = ops.turns(token_places(ops, lengths, X.shape[0]), half)
    mask, mask_net = (ops.next_mask(rate_now(each, is_train)) for each in (drop, drop_net))

    # All of shape (n_tokens, nO), but QKV (n_tokens, 3 * nO), and A (n_tokens, nH), and Z, which
    # has twice as many columns where it is gated.
    G, G_net = normalise.get_param("G"), normalise_net.get_param("G")
    normal, hat, scales = ops.layer_norm(X, G, normalise.get_param("b"))
    QKV = ops.gemm(normal, project.get_param("W"), trans2=True)
    kernels.rotate(QKV, project.get_param("b"), turns, half)
    attended, backprop_attend = ops.attend(QKV, lengths, n_heads)
    mixed = ops.gemm(attended, mix.get_param("W"), trans2=True)
    norm_net = G_net, normalise_net.get_param("b")
    H, normal_net, hat_net, scales_net = kernels.add_dropped_and_norm(
        mixed, mix.get_param("b"), X, norm_net, mask
    )
    Z = ops.gemm(normal_net, hidden.get_param("W"), trans2=True)
    A = kernels.activate(Z, hidden.get_param("b"), hidden.name)
    made = ops.gemm(A, out.get_param("W"), trans2=True)
    Y = kernels.add_dropped(made, out.get_param("b"), H, mask_net)
    info = ArrayInfo.from_array(Y)

    def backprop(dYr: Ragged) -> Ragged:
        dY: Any = ops.as_contig(dYr.dataXd)
        info.check_consistency(dY)
        d_added = kernels.dropout(dY, mask_net) if mask_net.rate else dY
        dA = _backprop_product(out, d_added, A)
        bias = d_added, gradient(out, "b")
        dZ = kernels.backprop_activate(dA, Z, gradient(hidden, "b"), hidden.name, bias)
        d_normal = _backprop_product(hidden, dZ, normal_net)
        dH, d_mixed = kernels.backprop_add_dropped_and_norm(
            d_normal, dY, (G_net, hat_net, scales_net), _gradients(normalise_net), mask
        )
        d_turned = backprop_attend(_backprop_product(mix, d_mixed, attended))
        bias = d_mixed, gradient(mix, "b")
        dQKV = kernels.backprop_rotate(d_turned, gradient(project, "b"), turns, half, bias)
        d_normal = _backprop_product(project, dQKV, normal)
        dX, _ = kernels.backprop_add_dropped_and_norm(
            d_normal, dH, (G, hat, scales), _gradients(normalise), kernels.NO_MASK
        )
        return Ragged(dX, lengths)

    return Ragged(Y, lengths), backprop


def _gradients(normalise: Model) -> Tuple[Any, Any]:
    return gradient(normalise, "G"), gradient(normalise, "b")


def _backprop_product(layer: Model, dY: Any, X: Any) -> Any:
    """The gradient of X in X Wᵀ; that of W is gathered."""
    ops: Any = layer.ops
    ops.add_product(gradient(layer, "W"), dY, X, trans1=True)
    return ops.gemm(dY, layer.get_param("W"))
