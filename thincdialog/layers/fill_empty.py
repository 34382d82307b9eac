"""A padding token for texts without tokens."""

from typing import Callable, Tuple

from thinc.api import Model
from thinc.types import Ragged

from ..ops.bags import bag_numbers
from ..registry import registry

InT = Ragged
OutT = Ragged


@registry.layers("thincdialog.fill_empty.v1")
def fill_empty() -> Model[InT, OutT]:
    """Give every example without tokens one token, id 0 (padding) in segment 0, so that
    layers after it never meet an empty sequence.

    X (Ragged): Ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Ragged]): The same with at least one token an example.
    """
    return Model("fill_empty", forward)


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops, tokens = model.ops, X.dataXd
    lengths = ops.xp.maximum(X.lengths, 1)  # (n_examples,)
    n_tokens = int(lengths.sum())
    if n_tokens == tokens.shape[0]:
        return X, lambda dY: dY
    # Old tokens go where their example now starts, at their old distance from its start.
    owners = bag_numbers(ops, X.lengths, tokens.shape[0])  # (n_old_tokens,)
    # (n_examples,)
    moved = (ops.xp.cumsum(lengths) - lengths) - (ops.xp.cumsum(X.lengths) - X.lengths)
    places = ops.xp.arange(tokens.shape[0]) + moved[owners]  # (n_old_tokens,)
    filled = ops.xp.zeros((n_tokens, 2), dtype="int32")  # (n_tokens, 2)
    filled[places] = tokens

    def backprop(dY: OutT) -> InT:
        return Ragged(dY.dataXd[places], X.lengths)  # (n_old_tokens, 2)

    return Ragged(filled, lengths), backprop
