"""Accuracy: the share of replies that are one of the labels."""

from typing import Dict, Optional, Sequence

from ..messages import Message, column
from ..registry import registry
from .example_metric import ExampleMetric
from .metric import AverageMetric, Metric
from .normalize import normalize_answer


@registry.metrics("thincdialog.Accuracy.v1")
def Accuracy(normalize: bool = True) -> ExampleMetric:
    """Share of examples whose reply is one of the labels; higher is better.

    normalize (bool): Compare after ParlAI's normalisation (case, ASCII punctuation
        and English articles do not count); false compares the texts as they are.
    RETURNS (ExampleMetric): Reports `accuracy`, 0.0 to 1.0.
    """
    return AccuracyMetric(normalize)


class AccuracyMetric(ExampleMetric):
    """See ``Accuracy``."""

    def __init__(self, normalize: bool = True):
        self.normalize = normalize
        self.reset()

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one example."""
        self.n_examples += 1
        self.n_right += self._is_right(labels, reply.get("text"))

    def add_batch(self, labels: Sequence[Sequence[str]], replies: Sequence[Message]) -> None:
        """Count many examples; reads only the column of texts."""
        self.n_examples += len(replies)
        self.n_right += sum(map(self._is_right, labels, column(replies, "text")))

    def _is_right(self, labels: Sequence[str], text: Optional[str]) -> bool:
        if text is None:
            return False
        if text in labels:
            return True
        if not self.normalize:
            return False
        guess = normalize_answer(text)
        return any(normalize_answer(label) == guess for label in labels)

    def report(self) -> Dict[str, Metric]:
        """`accuracy`."""
        return {"accuracy": AverageMetric(self.n_right, self.n_examples)}

    def reset(self) -> None:
        """Forget all counts."""
        self.n_right = 0
        self.n_examples = 0

    def merge(self, other: "AccuracyMetric") -> None:
        """Add the counts of another one."""
        self.n_right += other.n_right
        self.n_examples += other.n_examples
