"""How many texts a classifier answers at which precision, and how well it finds those that are out
of scope: labelled with its ``reject_class``, or with nothing that is a class of it."""

from math import sqrt
from typing import Dict, NamedTuple, Optional, Sequence

import numpy as np

from .predictions import Prediction

PRECISIONS = (0.90, 0.95, 0.98, 0.99)
# Standard deviations within which 95 % of a normal distribution lie.
Z = 1.959964


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


class Share(NamedTuple):
    """A share of examples with its 95 % interval (Wilson 1927).

    value (float): The share; nan of no examples.
    low (float): Lower end of the interval.
    high (float): Its upper end.
    """

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, n: int, n_all: int) -> "Share":
        """That of n among n_all."""
        if not n_all:
            return cls(np.nan, 0.0, 1.0)
        middle, total = (n + Z * Z / 2), n_all + Z * Z
        half = Z * sqrt(n * (n_all - n) / n_all + Z * Z / 4)
        return cls(n / n_all, (middle - half) / total, (middle + half) / total)


def threshold_for_precision(guesses: Guesses, precision: float) -> Optional[float]:
    """Find the threshold at which the most texts are answered with at least this precision.

    RETURNS (Optional[float]): Halfway to the next confidence below; None if there is none.
    """
    order = np.argsort(-guesses.confidence, kind="stable")
    confidence = guesses.confidence[order]
    below = np.append(confidence[1:], -1.0)
    is_good = guesses.is_right[order].cumsum() / np.arange(1, len(order) + 1) >= precision
    # Equal confidences are on the same side of any threshold.
    found = (is_good & (confidence > below) & (confidence >= 0)).nonzero()[0]
    return _between(below[found[-1]], confidence[found[-1]]) if len(found) else None


def threshold_for_recall(guesses: Guesses, recall: float) -> Optional[float]:
    """Find the lowest threshold that rejects at least this share of what is out of scope.

    RETURNS (Optional[float]): Halfway to the next confidence above; None if nothing is.
    """
    outside = np.sort(guesses.confidence[~guesses.is_inside])
    if not len(outside):
        return None
    n = int((np.arange(len(outside) + 1) / len(outside) >= recall).argmax())
    highest = outside[n - 1] if n else -1.0
    above = guesses.confidence[guesses.confidence > highest]
    return _between(highest, above.min() if len(above) else 1.0)


def _between(below: float, above: float) -> float:
    """A threshold that only what is above passes; 0.0 if nothing below has a class."""
    middle = (below + above) / 2
    return 0.0 if below < 0 else float(middle if middle > below else np.nextafter(below, 2))


# By what is wanted; see ``thincdialog.Classifier.v1``.
THRESHOLDS = {"precision": threshold_for_precision, "recall": threshold_for_recall}


class Covered(NamedTuple):
    """What a threshold does.

    threshold (float): The threshold.
    answered (Share): Share of the examples that get a class.
    precision (Share): Of these, those that get the right one.
    """

    threshold: float
    answered: Share
    precision: Share


def covered(guesses: Guesses, threshold: float) -> Covered:
    """What a threshold does to the examples."""
    passes = guesses.confidence >= threshold
    n, n_right = int(passes.sum()), int((passes & guesses.is_right).sum())
    return Covered(threshold, Share.of(n, len(passes)), Share.of(n_right, n))


def coverage(guesses: Guesses) -> Dict[float, Optional[Covered]]:
    """What the thresholds for each of ``PRECISIONS`` do; None where it cannot be reached."""
    chosen = {wanted: threshold_for_precision(guesses, wanted) for wanted in PRECISIONS}
    return {w: None if t is None else covered(guesses, t) for w, t in chosen.items()}


def of_scope(guesses: Guesses, threshold: float) -> Dict[str, Share]:
    """In-scope accuracy, and how well what is out of scope is found, at a threshold."""
    rejected, inside = guesses.confidence < threshold, guesses.is_inside
    n_found = int((rejected & ~inside).sum())
    return {
        "in-scope accuracy": Share.of(int((guesses.is_right & ~rejected).sum()), int(inside.sum())),
        "out-of-scope recall": Share.of(n_found, int((~inside).sum())),
        "out-of-scope precision": Share.of(n_found, int(rejected.sum())),
    }


def auroc(guesses: Guesses) -> float:
    """Compute how often an example in scope has a higher confidence than one out of scope, ties
    counted half; nan if all are on one side."""
    values, ranks = np.unique(guesses.confidence, return_inverse=True)
    inside = np.bincount(ranks[guesses.is_inside], minlength=len(values))
    outside = np.bincount(ranks[~guesses.is_inside], minlength=len(values))
    n_pairs = inside.sum() * outside.sum()
    higher = (inside * (outside.cumsum() - outside / 2)).sum()
    return float(higher / n_pairs) if n_pairs else np.nan
