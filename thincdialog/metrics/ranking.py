"""Ranking: the rank of the label among the candidates of a reply."""

from typing import List, Optional, Sequence

from ..messages import Message
from ..registry import registry
from .example_metric import ExampleAverages, distinct_numbers
from .words import normalize_answer

# Number of candidates in the ranking of a reply if no metric needs more, and the number that mrr
# reads.
RANKED = 100


@registry.metrics("thincdialog.Ranking.v1")
class Ranking(ExampleAverages):
    """Measure the fraction of examples with a label among the first k candidates, and the mean
    reciprocal rank of the best label among the first 100; higher is better.

    A reply without candidates ranks only its text. A label that was not ranked counts as 0.
    Reports `hits@k` for each k, and `mrr`, 0.0 to 1.0.

    ks (Optional[List[int]]): The k of each hits@k, 1 or more; 1, 5 and 10 if null. Agents rank 100
        candidates, or as many as the largest k.
    normalize (bool): Compare texts after ParlAI's normalisation, as ParlAI does. Then a candidate
        that differs from the label only in case or punctuation counts as the label, so scores are
        higher if candidates were drawn to be distinct.
    RAISES (ConfigError): If a k is less than 1.
    """

    def __init__(self, ks: Optional[List[int]] = None, normalize: bool = False):
        self.ks = distinct_numbers("thincdialog.Ranking.v1", "ks", ks, [1, 5, 10])
        self.n_ranked = self.ks[-1]
        self.names = [*(f"hits@{k}" for k in self.ks), "mrr"]
        self.normalize = normalize
        self.reset()

    def scores(self, labels: Sequence[str], reply: Message) -> Sequence[float]:
        """Return whether a label is among the first k, for each k, and the reciprocal rank."""
        ranked = reply.get("text_candidates")
        if ranked is None:
            text = reply.get("text")
            ranked = [] if text is None else [text]
        if self.normalize:
            labels = list(map(normalize_answer, labels))
            ranked = map(normalize_answer, ranked)
        ranked = list(ranked)
        # The rank of the first candidate that is a label, from 1; 0 if there is none.
        place = min((ranked.index(label) + 1 for label in labels if label in ranked), default=0)
        return [*(place <= k for k in self.ks), (place <= RANKED) / place] if place else ()
