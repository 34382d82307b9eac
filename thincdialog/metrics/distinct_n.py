"""Distinct n-grams: how diverse the replies are."""

from typing import Dict, FrozenSet, List, Literal, Optional, Sequence, Set

from ..messages import Message
from ..registry import registry
from .example_metric import ExampleMetric, distinct_numbers
from .metric import Metric
from .words import word_list


@registry.metrics("thincdialog.DistinctN.v1")
class DistinctN(ExampleMetric):
    """Measure the fraction of distinct n-grams in all replies together; higher is more diverse.

    Words are runs of letters and digits in lower case. The fraction falls with the number of
    replies, so compare only evaluations on the same examples. The metric keeps every distinct
    n-gram, about 100 bytes each. Reports `distinct_<n>` for each n, 0.0 to 1.0.

    ns (Optional[List[int]]): Lengths n of the n-grams, 1 or more; 1 and 2 if null.
    per (str): Denominator of the fraction: all "words", as in the paper, or all "ngrams" of that
        length, as in ParlAI.
    RAISES (ConfigError): If an n is less than 1.
    SOURCE: Li et al. 2016, https://arxiv.org/abs/1510.03055, section 5.2
    """

    def __init__(self, ns: Optional[List[int]] = None, per: Literal["words", "ngrams"] = "words"):
        self.ns = distinct_numbers("thincdialog.DistinctN.v1", "ns", ns, [1, 2])
        self.per = per
        self.reset()

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one example."""
        words = word_list(reply.get("text") or "")
        for n in self.ns:
            n_ngrams = max(0, len(words) - n + 1)
            self.n_all[n] += n_ngrams if self.per == "ngrams" else len(words)
            self.seen[n].update(" ".join(words[i : i + n]) for i in range(n_ngrams))

    def report(self) -> Dict[str, Metric]:
        """Return `distinct_<n>` for each n."""
        return {
            f"distinct_{n}": DistinctMetric(frozenset(self.seen[n]), self.n_all[n]) for n in self.ns
        }

    def reset(self) -> None:
        """Forget all counts."""
        self.n_all = dict.fromkeys(self.ns, 0)
        self.seen: Dict[int, Set[str]] = {n: set() for n in self.ns}


class DistinctMetric(Metric):
    """Compute the number of distinct items as a fraction of a total.

    seen (FrozenSet[str]): The distinct items.
    n_all (int): The total.
    """

    higher_is_better = True
    summed = ("seen", "n_all")

    def __init__(self, seen: FrozenSet[str], n_all: int):
        self.seen = seen
        self.n_all = n_all

    def value(self) -> float:
        """Return the fraction, 0.0 to 1.0; 0.0 if the total is 0."""
        return len(self.seen) / self.n_all if self.n_all else 0.0
