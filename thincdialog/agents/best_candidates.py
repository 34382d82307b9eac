"""The best of each conversation's candidates."""

from typing import Any, List, NamedTuple, Optional, Sequence

import numpy as np
from thinc.api import Ops

from .repeats import probabilities, rank


class Best(NamedTuple):
    """Of the candidates of one conversation.

    places (np.ndarray): Of the best ones, best first, of equals the first; repeats come last.
    scores (np.ndarray): Theirs, float32.
    probabilities (np.ndarray): Theirs among all that are no repeats, which have 0, float32.
    loss (Optional[float]): Of the right one against all others, in nats; None without one.
    """

    places: np.ndarray
    scores: np.ndarray
    probabilities: np.ndarray
    loss: Optional[float]


def best_candidates(
    ops: Ops,
    scores: Any,
    sizes: Sequence[int],
    n_best: int,
    repeats: Sequence[Optional[np.ndarray]],
    right: Sequence[int],
) -> List[Best]:
    """Of each row the best.

    ops (Ops): Those of the model.
    scores (Floats1d): Of all rows' candidates, one row after the other.
    sizes (Sequence[int]): Candidates of each row, 1 or more.
    n_best (int): How many, if there are as many.
    repeats (Sequence[Optional[np.ndarray]]): Which of a row's are repeats, bools; None for none.
    right (Sequence[int]): Place of each row's right one, or -1.
    """
    found, rows = [], np.split(ops.to_numpy(scores), np.cumsum(sizes)[:-1])
    for of_row, is_repeat, at in zip(rows, repeats, right):
        if is_repeat is None:
            is_repeat = np.zeros(len(of_row), dtype=bool)
        places = rank(of_row, is_repeat)[:n_best]
        P, high, loss = probabilities(of_row, is_repeat), of_row.max(), None
        if at >= 0:
            loss = float(np.log(np.exp(of_row - high).sum()) + high - of_row[at])
        found.append(Best(places, of_row[places], P[places], loss))
    return found
