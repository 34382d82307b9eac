"""A model that combines layers over the ids of different tokenizers."""

from typing import Any, Callable, Dict, Literal, Optional, Tuple

from thinc.api import Model
from thinc.types import Floats2d, Ragged

from ..data.special_tokens import N_SPECIAL
from ..layers.parts import join_outputs
from ..ops.bags import kept_tokens
from ..ops.devices import host_tokens, no_gradient
from ..registry import registry

InT = Ragged
OutT = Floats2d


@registry.models("thincdialog.Views.v1")
def Views(views: Dict[str, Model], join: Literal["add", "concatenate"] = "add") -> Model[InT, OutT]:
    """Read the same texts with several layers, each with its own tokenizer from the tokenizer
    ``thincdialog.Views.v1``, and join their outputs.

    views (Dict[str, Model]): A Model[Ragged, Floats2d] for some or all of the tokenizers, by name;
        in a config, `[x.views.name]`. Each layer gets the ids of its tokenizer, and the special
        tokens that an agent adds (``<turn>`` and speakers).
    join (str): "add" (outputs of the same width) or "concatenate" (side by side).
    X (Ragged): Token ids of all views and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, nO).
    RAISES (ValueError): If there are no views.
    """
    if not views:
        raise ValueError("views needs one layer or more, got none")
    attrs: Dict[str, Any] = {"join": join, "views": dict.fromkeys(views, range(0))}
    return Model(
        "views", forward, init=init, layers=list(views.values()), dims={"nO": None}, attrs=attrs
    )


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    inputs = [tokens_of(ids, X) for ids in model.attrs["views"].values()]
    is_sum = model.attrs["join"] == "add"
    Y, backprop_layers = join_outputs(model, inputs, is_train, is_sum=is_sum)

    def backprop(dY: OutT) -> InT:
        backprop_layers(dY)
        return no_gradient(X)

    return Y, backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    is_sum = model.attrs["join"] == "add"
    for layer, ids in zip(model.layers, model.attrs["views"].values()):
        layer.initialize(X=None if X is None else tokens_of(ids, X), Y=Y if is_sum else None)
    if all(layer.has_dim("nO") for layer in model.layers):
        widths = [layer.get_dim("nO") for layer in model.layers]
        if is_sum and len(set(widths)) > 1:
            raise ValueError(f"views: outputs of widths {widths} cannot be added")
        model.set_dim("nO", widths[0] if is_sum else sum(widths))


def tokens_of(ids: range, X: Ragged) -> Ragged:
    """Return the tokens of one view, with the ids of its tokenizer.

    ids (range): Ids of the view among those of all views.
    """
    tokens, lengths = host_tokens(X)
    is_own = (tokens[:, 0] >= ids.start) & (tokens[:, 0] < ids.stop)
    is_kept = is_own | (tokens[:, 0] < N_SPECIAL)
    kept: Any = kept_tokens(tokens, lengths, is_kept)
    kept.dataXd[is_own[is_kept], 0] -= ids.start
    return kept
