"""The best of many candidates."""

from typing import NamedTuple, Optional

import numpy as np


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


def best_of(
    scores: np.ndarray, n_best: int, is_repeat: Optional[np.ndarray] = None, right: int = -1
) -> Best:
    """The best candidates of a conversation.

    scores (np.ndarray): Of its candidates, shape (n_candidates,), float32.
    n_best (int): How many, if there are as many.
    is_repeat (Optional[np.ndarray]): Which of them are repeats, bools; None for none.
    right (int): Index of the right one, or -1.
    """
    loss = None
    if right >= 0:
        highest = scores.max()
        loss = float(np.log(np.exp(scores - highest).sum()) + highest - scores[right])
    places = best_places(scores, n_best, is_repeat)
    new = scores
    if is_repeat is not None and is_repeat.any() and not is_repeat.all():
        new = np.where(is_repeat, np.float32(-np.inf), scores)
    powers = np.exp(new - new.max())
    return Best(places, scores[places], powers[places] / powers.sum(), loss)


def best_places(
    scores: np.ndarray, n_best: int, is_repeat: Optional[np.ndarray] = None
) -> np.ndarray:
    """Indices of the best candidates, best first, of equals the first; repeats come after all
    others. Arguments as of ``best_of``."""
    n_repeats = 0 if is_repeat is None else np.count_nonzero(is_repeat)
    places = _highest(scores, n_best + n_repeats)
    if is_repeat is not None:
        places = places[np.argsort(is_repeat[places], kind="stable")]
    return places[:n_best]


def _highest(scores: np.ndarray, n: int) -> np.ndarray:
    """Indices of the n highest scores, as a stable sort of all has them, in less time."""
    falling = -scores
    if n < len(scores):
        last = np.partition(falling, n - 1)[n - 1]
        # With all equals of the last; of numbers that are not finite, all.
        some = np.flatnonzero(~(falling > last))
        return some[np.argsort(falling[some], kind="stable")][:n]
    return np.argsort(falling, kind="stable")
