"""The choice of the best of many candidates."""

from typing import NamedTuple, Optional

import numpy as np


class Best(NamedTuple):
    """Hold the best candidates of a conversation.

    places (np.ndarray): Their indices, best first; equals keep their order, and repeats are last.
    scores (np.ndarray): Their scores, float32.
    probabilities (np.ndarray): Their probabilities among all candidates that are not repeats,
        float32; a repeat has 0.
    loss (Optional[float]): Loss of the right candidate against all others, in nats; None if the
        right candidate is not known.
    """

    places: np.ndarray
    scores: np.ndarray
    probabilities: np.ndarray
    loss: Optional[float]


def best_of(
    scores: np.ndarray, n_best: int, is_repeat: Optional[np.ndarray] = None, right: int = -1
) -> Best:
    """Return the best candidates of a conversation.

    scores (np.ndarray): Scores of the candidates, shape (n_candidates,), float32.
    n_best (int): Maximum number of candidates to return.
    is_repeat (Optional[np.ndarray]): Which candidates are repeats, bools; None if none are.
    right (int): Index of the right candidate, or -1.
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
    """Return the indices of the best candidates, best first. Equals keep their order; repeats
    follow all others. Arguments are as for ``best_of``."""
    n_repeats = 0 if is_repeat is None else np.count_nonzero(is_repeat)
    places = _highest(scores, n_best + n_repeats)
    if is_repeat is not None:
        places = places[np.argsort(is_repeat[places], kind="stable")]
    return places[:n_best]


def _highest(scores: np.ndarray, n: int) -> np.ndarray:
    """Return the indices of the n highest scores as a stable sort would order them, but faster."""
    falling = -scores
    if n < len(scores):
        last = np.partition(falling, n - 1)[n - 1]
        # Include all scores equal to the last one; if some are not finite, include all scores.
        some = np.flatnonzero(~(falling > last))
        return some[np.argsort(falling[some], kind="stable")][:n]
    return np.argsort(falling, kind="stable")
