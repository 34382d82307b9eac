"""A second model that uses the same weights."""

import copy
from typing import Dict

from thinc.api import Model

from ..ops.dialog_ops import replicate_ops
from .torch_tensors import copy_of_shim


def replicate(model: Model, *, has_values: bool = True) -> Model:
    """Return a model with the same layers and the same parameter arrays, but its own ops and
    gradients, for another thread. (Thinc's ``Model.copy`` copies parameters and omits refs.)

    model (Model): An initialised model.
    has_values (bool): Whether the new model gets the parameters; if False, they have no values yet.
    RETURNS (Model): Has no gradients. Its parameters are the same arrays, not views of them.
    """
    ops = replicate_ops(model.ops)
    nodes = list(model.walk())
    copies: Dict[int, Model] = {}
    for node in nodes:
        copies[id(node)] = Model(
            node.name,
            node._func,
            init=node.init,
            dims={name: node.maybe_get_dim(name) for name in node.dim_names},
            params=dict.fromkeys(node.param_names),
            attrs=copy.deepcopy(node.attrs),
            shims=[copy_of_shim(shim, has_values) for shim in node.shims],
            ops=ops,
        )
    for node in nodes:
        copies[id(node)]._layers = [copies[id(layer)] for layer in node.layers]
    for node in nodes:  # After all layers are set, because a ref must lead to a node below.
        twin = copies[id(node)]
        for name in node.ref_names:
            ref = node.maybe_get_ref(name)
            twin.set_ref(name, None if ref is None else copies[id(ref)])
        for name in node.param_names:
            if has_values and node.has_param(name):
                twin.set_param(name, node.get_param(name))
    return copies[id(model)]
