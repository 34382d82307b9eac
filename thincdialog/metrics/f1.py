"""Precision, recall and F1 of the words of a reply against those of the labels."""

from collections import Counter
from typing import Dict, Sequence, Tuple

from ..messages import Message
from ..registry import registry
from .exact import ExactSum
from .example_metric import ExampleMetric
from .metric import AverageMetric, Metric
from .normalize import normalize_answer


@registry.metrics("thincdialog.F1.v1")
def F1() -> ExampleMetric:
    """Word overlap of reply and label, averaged over examples; higher is better.

    Words are those of ParlAI's normalisation, counted as often as they occur.
    With several labels each of the three is the best over the labels.

    RETURNS (ExampleMetric): Reports `precision`, `recall` and `f1`, 0.0 to 1.0.
    """
    return F1Metric()


class F1Metric(ExampleMetric):
    """See ``F1``."""

    def __init__(self) -> None:
        self.reset()

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one example."""
        self.n_examples += 1
        text = reply.get("text")
        if not text:
            return
        scores = [overlap(text, label) for label in labels]
        for total, values in zip(self.totals, zip(*scores)):
            best = max(values)
            if best:
                total.add(best)

    def report(self) -> Dict[str, Metric]:
        """`precision`, `recall`, `f1`."""
        names = ("precision", "recall", "f1")
        return {
            name: AverageMetric(total, self.n_examples) for name, total in zip(names, self.totals)
        }

    def reset(self) -> None:
        """Forget all counts."""
        self.n_examples = 0
        self.totals = (ExactSum(), ExactSum(), ExactSum())

    def merge(self, other: "F1Metric") -> None:
        """Add the counts of another one."""
        self.n_examples += other.n_examples
        for total, more in zip(self.totals, other.totals):
            total.merge(more)


def overlap(guess: str, label: str) -> Tuple[float, float, float]:
    """Precision, recall and F1 of a guess against one label, each 0.0 to 1.0."""
    guess_words = normalize_answer(guess).split()
    label_words = normalize_answer(label).split()
    unmatched = Counter(label_words)
    n_same = 0
    for word in guess_words:
        if unmatched.get(word):
            unmatched[word] -= 1
            n_same += 1
    if n_same == 0:
        return 0.0, 0.0, 0.0
    n_words = len(guess_words) + len(label_words)
    return n_same / len(guess_words), n_same / len(label_words), 2 * n_same / n_words
