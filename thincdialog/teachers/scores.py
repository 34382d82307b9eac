"""What a teacher and its copies counted about the replies they got."""

from collections import Counter
from typing import Dict, List, Sequence

from ..messages import Message
from ..metrics.example_metric import ExampleMetric
from ..metrics.macro_metric import merge_tasks
from ..metrics.metric import Metric, SumMetric


class Scores:
    """Counts examples, and compares replies with labels by the metrics it was given."""

    def __init__(self) -> None:
        self.metrics: List[ExampleMetric] = []
        self.n_examples = 0

    def set_metrics(self, metrics: Sequence[ExampleMetric]) -> None:
        """Compare by these from now on; they are filled in place."""
        self.metrics = list(metrics)

    def fresh(self) -> "Scores":
        """Empty ones of the same metrics."""
        fresh = Scores()
        fresh.set_metrics([metric.fresh() for metric in self.metrics])
        return fresh

    def add(self, labels: Sequence[str], reply: Message, task: int = 0) -> None:
        """Count one reply. An example without labels is counted and not compared.

        task (int): Number of its task, in a mixture.
        """
        self.n_examples += 1
        if labels:
            for metric in self.metrics:
                metric.add(labels, reply)

    def add_batch(
        self,
        labels: Sequence[Sequence[str]],
        replies: Sequence[Message],
        tasks: Sequence[int] = (),
    ) -> None:
        """Count the replies to a batch.

        tasks (Sequence[int]): Number of each one's task, in a mixture.
        """
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


class MixedScores(Scores):
    """Scores of several tasks, each by itself.

    names (Sequence[str]): Of the tasks.
    """

    def __init__(self, names: Sequence[str]):
        super().__init__()
        self.tasks = {name: Scores() for name in names}
        self._numbered = list(self.tasks.values())

    def set_metrics(self, metrics: Sequence[ExampleMetric]) -> None:
        """Compare by empty ones of the same settings, which each task has for itself."""
        for scores in self._numbered:
            scores.set_metrics([metric.fresh() for metric in metrics])

    def fresh(self) -> "MixedScores":
        """Empty ones of the same metrics."""
        fresh = MixedScores(list(self.tasks))
        for own, scores in zip(fresh._numbered, self._numbered):
            own.set_metrics([metric.fresh() for metric in scores.metrics])
        return fresh

    def add(self, labels: Sequence[str], reply: Message, task: int = 0) -> None:
        """Count one reply."""
        self._numbered[task].add(labels, reply)

    def add_batch(
        self,
        labels: Sequence[Sequence[str]],
        replies: Sequence[Message],
        tasks: Sequence[int] = (),
    ) -> None:
        """Count the replies to a batch."""
        if not any(scores.metrics for scores in self._numbered):
            for task, n_examples in Counter(tasks).items():
                self._numbered[task].n_examples += n_examples
            return
        rows: Dict[int, List[int]] = {}
        for row, task in enumerate(tasks):
            rows.setdefault(task, []).append(row)
        for task, own in rows.items():
            self._numbered[task].add_batch(
                [labels[row] for row in own], [replies[row] for row in own]
            )

    def report(self) -> Dict[str, Metric]:
        """All together, each task by itself, and the mean over tasks (``merge_tasks``)."""
        return merge_tasks({name: scores.report() for name, scores in self.tasks.items()})

    def reset(self) -> None:
        """Start afresh."""
        for scores in self._numbered:
            scores.reset()
