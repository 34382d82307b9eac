"""A second model over the same weights."""

import copy
from typing import Dict

from thinc.api import Model

from ..ops.dialog_ops import replicate_ops
from .torch_tensors import copy_of_shim


def replicate(model: Model, *, has_values: bool = True) -> Model:
    """A model of the same layers over the very same parameters, for another thread: with ops
    and gradients of its own. (Thinc's ``Model.copy`` copies parameters and leaves out refs.)

    model (Model): Initialised.
    has_values (bool): Whether it gets the parameters; else they have no values yet.
    RETURNS (Model): Without gradients; parameters are the same arrays, not views of them.
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
    for node in nodes:  # A ref leads to a node below, which must be there.
        twin = copies[id(node)]
        for name in node.ref_names:
            ref = node.maybe_get_ref(name)
            twin.set_ref(name, None if ref is None else copies[id(ref)])
        for name in node.param_names:
            if has_values and node.has_param(name):
                twin.set_param(name, node.get_param(name))
    return copies[id(model)]
