"""Ranking: where the label stands among the candidates of a reply."""

from typing import Dict, List, Optional, Sequence

from ..errors import ConfigError, Problem
from ..messages import Message
from ..registry import registry
from .exact import ExactSum
from .example_metric import ExampleMetric
from .metric import AverageMetric, Metric
from .normalize import normalize_answer


@registry.metrics("thincdialog.Ranking.v1")
def Ranking(ks: Optional[List[int]] = None, normalize: bool = False) -> ExampleMetric:
    """Share of examples with a label among the first k candidates, and the mean
    reciprocal rank of the best placed label; higher is better.

    A reply without candidates ranks its text alone. A label that was not ranked
    counts 0.

    ks (Optional[List[int]]): The k of each hits@k, 1 or more; 1, 5 and 10 if null.
    normalize (bool): Compare after ParlAI's normalisation, as ParlAI does. Then a
        candidate that differs from the label in case or punctuation only counts as
        the label, so scores come out higher where candidates were drawn to differ.
    RETURNS (ExampleMetric): Reports `hits@k` for each k, and `mrr`, 0.0 to 1.0.
    RAISES (ConfigError): If a k is less than 1.
    """
    ks = [1, 5, 10] if ks is None else ks
    if not ks or min(ks) < 1:
        text = f"'ks' of thincdialog.Ranking.v1 is {ks}"
        raise ConfigError([Problem("", text, "give one or more numbers of at least 1")])
    return RankingMetric(ks, normalize)


class RankingMetric(ExampleMetric):
    """See ``Ranking``."""

    def __init__(self, ks: Sequence[int] = (1, 5, 10), normalize: bool = False):
        self.ks = sorted(set(ks))
        self.normalize = normalize
        self.reset()

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one example."""
        self.n_examples += 1
        place = self._best_place(labels, reply)
        if place is None:
            return
        self.reciprocal.add(1 / place)
        for k in self.ks:
            self.n_hits[k] += place <= k

    def _best_place(self, labels: Sequence[str], reply: Message) -> Optional[int]:
        """Place, counted from 1, of the first candidate that is a label."""
        ranked = reply.get("text_candidates")
        if ranked is None:
            text = reply.get("text")
            ranked = [] if text is None else [text]
        right = set(labels)
        if self.normalize:
            right = set(map(normalize_answer, labels))
            ranked = map(normalize_answer, ranked)
        return next((i for i, candidate in enumerate(ranked, start=1) if candidate in right), None)

    def report(self) -> Dict[str, Metric]:
        """`hits@k` for each k, and `mrr`."""
        report: Dict[str, Metric] = {
            f"hits@{k}": AverageMetric(self.n_hits[k], self.n_examples) for k in self.ks
        }
        report["mrr"] = AverageMetric(self.reciprocal, self.n_examples)
        return report

    def reset(self) -> None:
        """Forget all counts."""
        self.n_examples = 0
        self.n_hits = dict.fromkeys(self.ks, 0)
        self.reciprocal = ExactSum()

    def merge(self, other: "RankingMetric") -> None:
        """Add the counts of another one with the same ks."""
        self.n_examples += other.n_examples
        self.reciprocal.merge(other.reciprocal)
        for k in self.ks:
            self.n_hits[k] += other.n_hits[k]
