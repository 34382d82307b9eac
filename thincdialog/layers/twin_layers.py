"""Two layers alike, with weights of their own, that share a batch."""

from typing import Any, Callable, List, Tuple

from thinc.api import Model

from ..ops.gpu.twins import Twins


class TwinLayers:
    """Stands where a layer does in the forward pass of a GPU: its weights are those of both,
    its attributes those of the first.

    both (Tuple[Model, Model]): Layers that differ in their weights alone.
    n_first (int): Rows of the batch that belong to the first.
    """

    def __init__(self, both: Tuple[Model, Model], n_first: int):
        self.both, self.n_first = both, n_first
        self.attrs, self.ops = both[0].attrs, both[0].ops

    @property
    def layers(self) -> List["TwinLayers"]:
        """Those within them, as twins."""
        return [TwinLayers(pair, self.n_first) for pair in zip(*(e.layers for e in self.both))]

    def run(self, forward: Callable, X: Any, is_train: bool) -> Tuple[Any, Callable]:
        """Their forward pass, and the function that goes back.

        forward (Callable): For a layer on a device, and so for both.
        """
        return forward(self, X, is_train)

    def get_param(self, name: str) -> Twins:
        """A weight of both."""
        one, other = (each.get_param(name) for each in self.both)
        return Twins(one, other, self.n_first)


def are_twins(one: Model, other: Model) -> bool:
    """Whether two layers, and those within them, differ in their weights alone."""
    same = one._func is other._func and one.attrs == other.attrs
    dims = [{name: each.maybe_get_dim(name) for name in each.dim_names} for each in (one, other)]
    params = one.param_names == other.param_names and not (one.ref_names or other.ref_names)
    is_like = same and dims[0] == dims[1] and params and len(one.layers) == len(other.layers)
    return is_like and all(map(are_twins, one.layers, other.layers))


def each_of(layer: Any) -> Tuple[Model, ...]:
    """Of twins both; else it alone."""
    return layer.both if isinstance(layer, TwinLayers) else (layer,)
