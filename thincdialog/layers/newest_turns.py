"""A cut of conversations to their newest turns, for layers that are expensive per token."""

from typing import Callable, Tuple

from thinc.api import Model
from thinc.types import Ragged

from ..ops.bags import kept_tokens
from ..ops.devices import host_tokens, no_gradient
from ..registry import registry

InT = Ragged
OutT = Ragged


@registry.layers("thincdialog.newest_turns.v1")
def newest_turns(n_turns: int = 2) -> Model[InT, OutT]:
    """Drop the tokens of older turns.

    n_turns (int): Number of turns to keep, including the current one, 1 or more. A reply, which
        is in segment 0, is kept whole.
    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Ragged]): The remaining tokens, in order.
    RAISES (ValueError): If n_turns is below 1.
    """
    if n_turns < 1:
        raise ValueError(f"newest_turns: n_turns = {n_turns}, but it must be 1 or more")
    return Model("newest_turns", forward, attrs={"n_turns": n_turns})


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    tokens, old = host_tokens(X)  # (n_tokens, 2), (n_examples,)
    kept = kept_tokens(tokens, old, tokens[:, 1] < model.attrs["n_turns"])
    return kept, lambda dY: no_gradient(X)
