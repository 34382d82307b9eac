"""Gradients that layers add to, and those that nobody needs."""

from typing import Any, Sequence, Tuple

from thinc.api import Model, Ops

from ..ops.bags import add_to_rows
from ..ops.dialog_cupy_ops import DialogCupyOps


def gradient(model: Model, param: str) -> Any:
    """The gradient of a parameter, to be added to in place; zeros if it has none yet.

    model (Model): The layer.
    param (str): Name of the parameter.
    """
    if not model.has_grad(param):
        model.set_grad(param, model.ops.xp.zeros_like(model.get_param(param)))
    return model.get_grad(param)


def add_rows(model: Model, param: str, rows: Any, values: Any) -> None:
    """Add to rows of a parameter's gradient.

    rows, values: As ``parts_by_key`` gives them.
    """
    if isinstance(model.ops, DialogCupyOps):
        add_to_rows(model.ops, gradient(model, param), [(rows, values)])
    else:
        whole = model.ops.xp.zeros_like(model.get_param(param))
        whole[rows] = values
        model.inc_grad(param, whole)


def gradient_of_rows(ops: DialogCupyOps, X: Any, parts: Sequence[Tuple[Any, Any]]) -> Any:
    """The gradient of X on a device, of which some rows were used.

    parts (Sequence[Tuple]): Numbers of rows, each in one part at most, and their gradient.
    """
    if all(ops.is_no_gradient(d_rows) for _, d_rows in parts):
        return ops.no_gradient(X)
    dX = ops.xp.zeros(X.shape, dtype=parts[0][1].dtype)
    for rows, d_rows in parts:
        dX[rows] = d_rows
    return dX


def no_gradient(ops: Ops, X: Any) -> Any:
    """Zeros like X, which has no gradient because it holds ids. Each call returns an array of
    its own: a layer may add to it in place."""
    return ops.no_gradient(X) if isinstance(ops, DialogCupyOps) else ops.xp.zeros_like(X)
