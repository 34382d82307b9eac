"""Distinct n-grams within each reply: how little a reply repeats itself."""

from typing import List, Optional, Sequence

from ..registry import registry
from .example_metric import TextAverages, distinct_numbers
from .words import word_list


@registry.metrics("thincdialog.IntraDistinctN.v1")
class IntraDistinctN(TextAverages):
    """Measure the fraction of distinct n-grams within each reply, averaged over replies; higher is
    less repetition, and 1.0 is none. A reply with fewer than n words counts as 0, as in ParlAI.

    Texts are split into words as in ``thincdialog.DistinctN.v1``, which measures repetition between
    replies.
    Reports `intra_distinct_<n>` for each n, 0.0 to 1.0.

    ns (Optional[List[int]]): Lengths n of the n-grams, 1 or more; 1 and 2 if null.
    RAISES (ConfigError): If an n is less than 1.
    """

    def __init__(self, ns: Optional[List[int]] = None):
        self.ns = distinct_numbers("thincdialog.IntraDistinctN.v1", "ns", ns, [1, 2])
        self.names = [f"intra_distinct_{n}" for n in self.ns]
        self.reset()

    def text_scores(self, labels: Sequence[str], text: str) -> Sequence[float]:
        """Return the fraction for each n."""
        words = word_list(text)
        found = []
        for n in self.ns:
            ngrams = [words[i : i + n] for i in range(len(words) - n + 1)]
            found.append(len(set(ngrams)) / len(ngrams) if ngrams else 0.0)
        return found
