"""Pairs of a conversation and a reply, joined to one sequence each."""

from typing import Any, Callable, Tuple

import numpy as np
from thinc.api import Model
from thinc.types import Ints2d, Ragged

from ..ops.bags import places_in_bags
from ..ops.devices import host_tokens, on_host
from ..registry import registry

InT = Tuple[Ragged, Ragged, Ints2d]
OutT = Ragged


@registry.layers("thincdialog.JoinedPairs.v1")
def JoinedPairs() -> Model[InT, OutT]:
    """Join the tokens of a conversation and a reply into one sequence, for each given pair. The
    reply becomes segment 0, and the segments of the conversation count from 1.

    X (Tuple[Ragged, Ragged, Ints2d]): Token ids and segments of conversations and of replies,
        int32, shape (n_tokens, 2); and the pairs, each a row of a conversation and a row of a
        reply, int32, shape (n_pairs, 2).
    RETURNS (Model[Tuple[Ragged, Ragged, Ints2d], Ragged]): Token ids and segments of each pair,
        int32, shape (n_joined_tokens, 2). They have no gradient.
    """
    return Model("joined_pairs", forward)


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    contexts, replies, pairs = X
    # (n_joined_tokens, 2), (n_pairs,)
    tokens, lengths = _joined(*host_tokens(contexts), *host_tokens(replies), on_host(pairs))
    return Ragged(tokens, lengths), lambda dY: X


def _joined(contexts: Any, n_own: Any, replies: Any, n_reply: Any, pairs: Any) -> Tuple[Any, ...]:
    """Return the tokens of all pairs, and the number of tokens of each pair."""
    lengths = [each.astype(np.int64) for each in (n_own, n_reply)]
    starts = [each.cumsum() - each for each in lengths]
    starts[1] += len(contexts)  # Replies lie after all conversations.
    # For each pair, the start and length of the conversation and of the reply: (n_pairs, 2).
    firsts, sizes = (
        np.stack([of[0][pairs[:, 0]], of[1][pairs[:, 1]]], axis=1) for of in (starts, lengths)
    )
    sizes = sizes.ravel()
    places = firsts.ravel().repeat(sizes) + places_in_bags(sizes)  # (n_joined_tokens,)
    tokens = np.concatenate([contexts + np.array([0, 1], dtype="i"), replies])  # (n_tokens, 2)
    return tokens[places], sizes.reshape(-1, 2).sum(axis=1).astype("i")
