"""Distinct n-grams: how varied the replies are."""

from typing import Dict, FrozenSet, List, Literal, Optional, Sequence, Set

from ..messages import Message
from ..registry import registry
from .example_metric import ExampleMetric, distinct_numbers
from .metric import Metric
from .words import word_list


@registry.metrics("thincdialog.DistinctN.v1")
class DistinctN(ExampleMetric):
    """Different n-grams of all replies together, as a share; higher is more varied.

    Words are runs of letters and digits in lower case. The share falls with the number of
    replies: compare evaluations on the same examples. Keeps every different n-gram: some 100
    bytes each. Reports `distinct_<n>` for each n, 0.0 to 1.0.

    ns (Optional[List[int]]): The n of each, 1 or more; 1 and 2 if null.
    per (str): Of what a share: all "words", as in the paper, or "ngrams" of that n, as in ParlAI.
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
        """`distinct_<n>` for each n."""
        return {
            f"distinct_{n}": DistinctMetric(frozenset(self.seen[n]), self.n_all[n]) for n in self.ns
        }

    def reset(self) -> None:
        """Forget all counts."""
        self.n_all = dict.fromkeys(self.ns, 0)
        self.seen: Dict[int, Set[str]] = {n: set() for n in self.ns}


class DistinctMetric(Metric):
    """How many different things there are, as a share.

    seen (FrozenSet[str]): The different ones.
    n_all (int): What they are a share of.
    """

    higher_is_better = True
    summed = ("seen", "n_all")

    def __init__(self, seen: FrozenSet[str], n_all: int):
        self.seen = seen
        self.n_all = n_all

    def value(self) -> float:
        """The share, 0.0 to 1.0; 0.0 without any."""
        return len(self.seen) / self.n_all if self.n_all else 0.0
