"""Measure how many texts a classifier answers at which precision, and how well it finds texts that
are out of scope. A text is out of scope if none of its labels is a class of the classifier, other
than its ``reject_class``."""

from math import nan, sqrt
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ..metrics.auc import area
from ..protocol import Agent
from .predictions import Prediction

PRECISIONS = (0.90, 0.95, 0.98, 0.99)
# 95 % of a normal distribution is within this number of standard deviations from its mean.
Z = 1.959964

# A fraction, and the ends of its interval.
Share = Tuple[float, float, float]


class Guesses(NamedTuple):
    """Hold the best class of each example, in arrays of shape (n_examples,).

    confidence (np.ndarray): ``Agent.confidence`` in the best class; negative if that class is the
        ``reject_class``, so that it is below every threshold.
    is_right (np.ndarray): Whether the best class is a label, and not the ``reject_class``.
    is_inside (np.ndarray): Whether the example is in scope: one of its labels is a class, and not
        the ``reject_class``.
    """

    confidence: np.ndarray
    is_right: np.ndarray
    is_inside: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[Prediction], agent: Agent) -> "Guesses":
        """Return the best classes in a classifier's predictions, which must all have labels."""
        columns = []
        for row in rows:
            labels = {*(row.labels or ())} - {agent.reject_class}
            best, p = row.reply["text_candidates"][0], row.reply["candidate_probabilities"][0]
            p = -p if best == agent.reject_class else agent.confidence(row.text, p)
            columns.append((p, best in labels, not labels.isdisjoint(row.reply["classes"])))
        return cls(*map(np.array, zip(*columns)))


def share(n: int, n_all: int) -> Share:
    """Compute a fraction with its 95 % interval (Wilson 1927).

    n (int): Number of items that count.
    n_all (int): Number of all items.
    RETURNS (Tuple[float, float, float]): The fraction (nan without items), and the ends of the
        interval.
    """
    if not n_all:
        return nan, 0.0, 1.0
    half = Z * sqrt(n * (n_all - n) / n_all + Z * Z / 4)
    low, high = ((n + Z * Z / 2 + side) / (n_all + Z * Z) for side in (-half, half))
    return n / n_all, low, high


def lowest_threshold(guesses: Guesses, wanted: str, least: float) -> Optional[float]:
    """Find the lowest threshold that reaches a precision or recall, because it answers the most
    texts.

    wanted (str): "precision" of the texts that get a class, or "recall" of the texts out of scope.
    least (float): The precision or recall to reach, 0.0 to 1.0.
    RETURNS (Optional[float]): The threshold, halfway between two confidences, or 0.0 if no
        threshold is needed; None if no threshold reaches it.
    """
    confidence, is_right, is_inside = guesses
    # The last entry is for a threshold that rejects every text.
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
    """Measure the effect of a threshold: the fractions of examples that get a class (answered), of
    these that get the right class (precision), of examples out of scope that get no class
    (out-of-scope recall), and so on. Each has its interval."""
    passes, inside = guesses.confidence >= threshold, guesses.is_inside
    n_right, n_found = int((passes & guesses.is_right).sum()), int((~passes & ~inside).sum())
    return {
        "answered": share(int(passes.sum()), len(passes)),
        "precision": share(n_right, int(passes.sum())),
        "in-scope accuracy": share(n_right, int(inside.sum())),
        "out-of-scope recall": share(n_found, int((~inside).sum())),
        "out-of-scope precision": share(n_found, int((~passes).sum())),
    }


def coverage(guesses: Guesses, threshold: float) -> Dict[str, Optional[Dict[str, Any]]]:
    """Measure the effect of several thresholds (see ``shares_at``).

    threshold (float): Threshold of the model.
    RETURNS (Dict[str, Optional[Dict[str, Any]]]): The fractions and the `threshold` for each of
        ``PRECISIONS`` ("95%"), None if no threshold reaches it; and for the model's own threshold
        ("model"), with the `AUROC`.
    """
    chosen = {f"{p:.0%}": lowest_threshold(guesses, "precision", p) for p in PRECISIONS}
    chosen["model"] = threshold
    found: Dict[str, Any] = {
        name: None if t is None else {"threshold": t, **shares_at(guesses, t)}
        for name, t in chosen.items()
    }
    found["model"]["AUROC"] = auroc(guesses)
    return found


def auroc(guesses: Guesses) -> float:
    """Compute the area under the ROC curve: how often an example in scope has a higher confidence
    than an example out of scope, with ties counted half. Return nan if there are no such pairs."""
    inside, outside = (guesses.confidence[guesses.is_inside == side] for side in (True, False))
    return area(inside, np.sort(outside)) if len(inside) and len(outside) else nan
