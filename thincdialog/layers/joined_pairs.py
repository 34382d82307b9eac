"""Conversation and reply as one sequence."""

from typing import Any, Callable, Tuple

import numpy as np
from thinc.api import Model
from thinc.types import Ints2d, Ragged

from ..ops.slices import slice_places
from ..registry import registry

InT = Tuple[Ragged, Ragged, Ints2d]
OutT = Ragged


@registry.layers("thincdialog.JoinedPairs.v1")
def JoinedPairs() -> Model[InT, OutT]:
    """The tokens of a conversation and behind them those of a reply, for each pair that is
    named. Replies become segment 0, the segments of conversations count from 1.

    X (Tuple[Ragged, Ragged, Ints2d]): Ids and segments of conversations and of replies, int32,
        shape (n_tokens, 2); and the pairs, a row of the one and one of the other, int32, shape
        (n_pairs, 2).
    RETURNS (Model[Tuple[Ragged, Ragged, Ints2d], Ragged]): Ids and segments of each pair, int32,
        shape (n_joined_tokens, 2). They have no gradient.
    """
    return Model("joined_pairs", forward)


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops = model.ops
    contexts, replies, pairs = X
    rows: Any = ops.to_numpy(pairs)  # (n_pairs, 2)
    lengths = [ops.to_numpy(each.lengths).astype(np.int64) for each in (contexts, replies)]
    starts = [each.cumsum() - each for each in lengths]
    starts[1] += contexts.dataXd.shape[0]  # Replies lie behind all conversations.
    # A slice of a conversation and one of a reply in turn: (n_pairs, 2) each.
    firsts, sizes = (
        np.stack([of[0][rows[:, 0]], of[1][rows[:, 1]]], axis=1) for of in (starts, lengths)
    )
    places: Any = slice_places(firsts.ravel(), sizes.ravel())  # (n_joined_tokens,)
    shift = ops.asarray2i([[0, 1]])
    tokens: Any = ops.xp.concatenate([contexts.dataXd + shift, replies.dataXd])  # (n_tokens, 2)
    n_joined: Any = sizes.sum(axis=1)  # (n_pairs,)
    Y = Ragged(tokens[ops.asarray1i(places)], ops.asarray1i(n_joined))
    return Y, lambda dY: X
