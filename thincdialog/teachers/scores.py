"""What a teacher and its copies counted about the replies they got."""

from typing import Dict, List, Sequence

from ..messages import Message
from ..metrics.example_metric import ExampleMetric
from ..metrics.metric import Metric, SumMetric


class Scores:
    """Counts examples, and compares replies with labels by the metrics it was given.

    metrics (Sequence[ExampleMetric]): Empty ones; they are filled in place.
    """

    def __init__(self, metrics: Sequence[ExampleMetric] = ()):
        self.metrics: List[ExampleMetric] = list(metrics)
        self.n_examples = 0

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one reply. An example without labels is counted and not compared."""
        self.n_examples += 1
        if labels:
            for metric in self.metrics:
                metric.add(labels, reply)

    def add_batch(self, labels: Sequence[Sequence[str]], replies: Sequence[Message]) -> None:
        """Count the replies to a batch."""
        self.n_examples += len(replies)
        if not self.metrics:
            return
        if not all(labels):
            rows = [row for row, answers in enumerate(labels) if answers]
            labels = [labels[row] for row in rows]
            replies = [replies[row] for row in rows]
        for metric in self.metrics:
            metric.add_batch(labels, replies)

    def report(self) -> Dict[str, Metric]:
        """`examples`, a count of replies, and what the metrics report."""
        report: Dict[str, Metric] = {"examples": SumMetric(self.n_examples)}
        for metric in self.metrics:
            report.update(metric.report())
        return report

    def reset(self) -> None:
        """Start afresh."""
        self.n_examples = 0
        for metric in self.metrics:
            metric.reset()
