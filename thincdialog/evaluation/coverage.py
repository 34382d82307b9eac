"""How many texts a classifier answers at which precision, and how well it finds those that are out
of scope: labelled with its ``reject_class``, or with nothing that is a class of it."""

from math import nan, sqrt
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .predictions import Prediction

PRECISIONS = (0.90, 0.95, 0.98, 0.99)
# Standard deviations within which 95 % of a normal distribution lie.
Z = 1.959964

Share = Tuple[float, float, float]


class Guesses(NamedTuple):
    """The best class of each example; arrays of shape (n_examples,).

    confidence (np.ndarray): Its probability; negative if it is the ``reject_class``, which no
        threshold lets pass.
    is_right (np.ndarray): Whether it is a label and not the ``reject_class``.
    is_inside (np.ndarray): Whether a label is a class and not the ``reject_class``.
    """

    confidence: np.ndarray
    is_right: np.ndarray
    is_inside: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[Prediction], reject_class: str) -> "Guesses":
        """Those of a classifier's predictions, which all have labels."""
        columns = []
        for row in rows:
            labels = {*(row.labels or ())} - {reject_class}
            best, p = row.reply["text_candidates"][0], row.reply["candidate_probabilities"][0]
            is_inside = not labels.isdisjoint(row.reply["classes"])
            columns.append((-p if best == reject_class else p, best in labels, is_inside))
        return cls(*map(np.array, zip(*columns)))


def share(n: int, n_all: int) -> Share:
    """Compute a share with its 95 % interval (Wilson 1927).

    RETURNS (Tuple[float, float, float]): The share, nan of nothing, and the ends of the interval.
    """
    if not n_all:
        return nan, 0.0, 1.0
    half = Z * sqrt(n * (n_all - n) / n_all + Z * Z / 4)
    low, high = ((n + Z * Z / 2 + side) / (n_all + Z * Z) for side in (-half, half))
    return n / n_all, low, high


def lowest_threshold(guesses: Guesses, wanted: str, least: float) -> Optional[float]:
    """Find the lowest threshold with a share that is wanted; it answers the most texts.

    wanted (str): "precision" of the texts that get a class, or "recall" of those out of scope.
    least (float): The share.
    RETURNS (Optional[float]): Halfway between two confidences; None if there is none.
    """
    confidence, is_right, is_inside = guesses
    # The last one rejects every text.
    ticks = np.append(np.unique(confidence[confidence >= 0]), np.nextafter(1.0, 2.0))

    def passing(which: np.ndarray) -> np.ndarray:
        return which.sum() - np.searchsorted(np.sort(confidence[which]), ticks)

    n, n_all = passing(is_right), passing(confidence >= 0)
    if wanted == "recall":
        n, n_all = (~is_inside).sum() - passing(~is_inside), (~is_inside).sum()
    found = np.flatnonzero((n_all > 0) & (n / np.maximum(n_all, 1) >= least))
    if not len(found) or not found[0]:
        return 0.0 if len(found) else None
    below, above = ticks[found[0] - 1 : found[0] + 1].tolist()
    return max((below + above) / 2, np.nextafter(below, 2.0).item())


def shares_at(guesses: Guesses, threshold: float) -> Dict[str, Share]:
    """Count what a threshold does: how many examples get a class, how many of these the right one
    (precision), and how many of those out of scope get none."""
    passes, inside = guesses.confidence >= threshold, guesses.is_inside
    n_right, n_found = int((passes & guesses.is_right).sum()), int((~passes & ~inside).sum())
    return {
        "answered": share(int(passes.sum()), len(passes)),
        "precision": share(n_right, int(passes.sum())),
        "in-scope accuracy": share(n_right, int(inside.sum())),
        "out-of-scope recall": share(n_found, int((~inside).sum())),
        "out-of-scope precision": share(n_found, int((~passes).sum())),
    }


def coverage(guesses: Guesses, threshold: float) -> Dict[str, Dict[str, Any]]:
    """Count what thresholds do: for each of ``PRECISIONS`` the one that reaches it, if any does
    ("95%"), and the model's ("model"). Each also has its `threshold`, and the model's the `AUROC`.

    threshold (float): The model's.
    """
    chosen = {f"{p:.0%}": lowest_threshold(guesses, "precision", p) for p in PRECISIONS}
    known = {name: t for name, t in {**chosen, "model": threshold}.items() if t is not None}
    found = {name: {"threshold": t, **shares_at(guesses, t)} for name, t in known.items()}
    found["model"]["AUROC"] = auroc(guesses)
    return found


def auroc(guesses: Guesses) -> float:
    """Compute how often an example in scope has a higher confidence than one out of scope, ties
    counted half; nan if all are on one side."""
    values, ranks = np.unique(guesses.confidence, return_inverse=True)
    inside = np.bincount(ranks[guesses.is_inside], minlength=len(values))
    outside = np.bincount(ranks[~guesses.is_inside], minlength=len(values))
    n_pairs = inside.sum() * outside.sum()
    higher = (inside * (outside.cumsum() - outside / 2)).sum()
    return float(higher / n_pairs) if n_pairs else nan
