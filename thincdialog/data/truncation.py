"""How much text is cut off before a model reads it."""

from typing import Dict, List, Optional, Tuple

import numpy as np

from ..metrics import AverageMetric, Metric

# How many texts were cut, and how many of their tokens together.
Cut = Tuple[int, int]


class Truncation:
    """Counts of contexts and labels since the last reset."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start counting afresh."""
        self._contexts, self._labels = [0, 0, 0], [0, 0, 0]

    def count_contexts(self, n: int, cut: Cut) -> None:
        """A batch of n contexts was read."""
        _add(self._contexts, n, cut)

    def count_labels(self, n: int, cut: Cut) -> None:
        """A batch of n labels was read."""
        _add(self._labels, n, cut)

    def report(self) -> Dict[str, Metric]:
        """The shares of contexts and labels that were truncated, and the tokens cut from
        those, on average. All are better lower."""
        n_contexts, cut_contexts, of_contexts = self._contexts
        n_labels, cut_labels, of_labels = self._labels
        return {
            "truncated_contexts": AverageMetric(cut_contexts, n_contexts),
            "truncated_labels": AverageMetric(cut_labels, n_labels),
            "truncated_context_tokens": AverageMetric(of_contexts, cut_contexts),
            "truncated_label_tokens": AverageMetric(of_labels, cut_labels),
        }

    def counts(self) -> Dict[str, int]:
        """What ``report`` is made of; adds up over steps."""
        found: Dict[str, int] = {}
        for field, (n, cut, tokens) in (("context", self._contexts), ("label", self._labels)):
            found[f"{field}s"] = n
            found[f"truncated_{field}s"] = cut
            found[f"truncated_{field}_tokens"] = tokens
        return found


def cut_of(excess: Optional[np.ndarray]) -> Cut:
    """What is cut.

    excess (Optional[np.ndarray]): Of each text, how many tokens are too many; None for none.
    """
    return (0, 0) if excess is None else (int(np.count_nonzero(excess)), int(excess.sum()))


def _add(counts: List[int], n: int, cut: Cut) -> None:
    for place, more in enumerate((n, *cut)):
        counts[place] += more
