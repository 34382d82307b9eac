"""A transformer block in few kernels of a GPU."""

from typing import Any, Callable, Tuple

from thinc.api import Model
from thinc.types import Ragged
from thinc.util import ArrayInfo

from ..ops.dialog_cupy_ops import LEAST_VARIANCE, DialogCupyOps
from ..ops.gpu import kernels
from ..ops.rotation import token_places
from .gradients import gradient

_NO_MASK: kernels.Mask = (0.0, 0, 0)


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
    X: Any = Xr.dataXd
    lengths, n_heads = Xr.lengths, attention.attrs["n_heads"]
    is_gelu = hidden.name == "gelu"
    half, turns = X.shape[1] // (2 * n_heads), None
    if attention.attrs["positions"] == "rotary":
        turns = ops.turns(token_places(ops, lengths, X.shape[0]), half)
    mask, mask_net = (_mask(ops, each, is_train) for each in (drop, drop_net))

    # All of shape (n_tokens, nO), but QKV (n_tokens, 3 * nO), and Z and A (n_tokens, nH).
    G, b = _of(normalise, "G", "b")
    normal, hat, scales = ops.layer_norm(X, G, b)
    QKV = ops.gemm(normal, project.get_param("W"), trans2=True)
    kernels.rotate(QKV, project.get_param("b"), turns, half)
    attended, backprop_attend = ops.attend(QKV, lengths, n_heads)
    mixed = ops.gemm(attended, mix.get_param("W"), trans2=True)
    G_net, b_net = _of(normalise_net, "G", "b")
    H, normal_net, hat_net, scales_net = kernels.add_dropped_and_normalise(
        X, mixed, mix.get_param("b"), mask, G_net, b_net, LEAST_VARIANCE
    )
    Z = ops.gemm(normal_net, hidden.get_param("W"), trans2=True)
    A = kernels.activate(Z, hidden.get_param("b"), is_gelu)
    added = ops.gemm(A, out.get_param("W"), trans2=True)
    Y = kernels.add_dropped(H, added, out.get_param("b"), mask_net)
    info = ArrayInfo.from_array(Y)

    def backprop(dYr: Ragged) -> Ragged:
        dY: Any = dYr.dataXd
        info.check_consistency(dY)
        d_added = kernels.backprop_add_dropped(dY, gradient(out, "b"), mask_net)
        dA = _backprop_product(out, d_added, A)
        dZ = kernels.backprop_activate(dA, Z, gradient(hidden, "b"), is_gelu)
        d_normal = _backprop_product(hidden, dZ, normal_net)
        gradients = (gradient(normalise_net, "G"), gradient(normalise_net, "b"))
        dH, *_ = kernels.backprop_layer_norm(d_normal, G_net, hat_net, scales_net, *gradients, dY)
        d_mixed = kernels.backprop_add_dropped(dH, gradient(mix, "b"), mask)
        d_turned = backprop_attend(_backprop_product(mix, d_mixed, attended))
        dQKV = kernels.backprop_rotate(d_turned, gradient(project, "b"), turns, half)
        d_normal = _backprop_product(project, dQKV, normal)
        gradients = (gradient(normalise, "G"), gradient(normalise, "b"))
        dX, *_ = kernels.backprop_layer_norm(d_normal, G, hat, scales, *gradients, dH)
        return Ragged(dX, lengths)

    return Ragged(Y, lengths), backprop


def _of(layer: Model, *names: str) -> Tuple[Any, ...]:
    return tuple(map(layer.get_param, names))


def _mask(ops: DialogCupyOps, layer: Model, is_train: bool) -> kernels.Mask:
    rate = layer.attrs["dropout_rate"]
    return ops.next_mask(rate) if rate and is_train and layer.attrs["is_enabled"] else _NO_MASK


def _backprop_product(layer: Model, dY: Any, X: Any) -> Any:
    """The gradient of X in X Wᵀ; that of W is gathered."""
    layer.ops.add_product(gradient(layer, "W"), dY, X, trans1=True)
    return layer.ops.gemm(dY, layer.get_param("W"))
