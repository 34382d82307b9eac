"""What a teacher and its copies counted about the replies they got."""

from typing import Dict, List, Sequence

import numpy as np

from ..examples.batch import Batch
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

    def add_batch(self, batch: Batch, replies: Sequence[Message]) -> None:
        """Count the replies to a batch, one for each row."""
        self.n_examples += len(replies)
        if not self.metrics:
            return
        labels = batch.store.cells("labels", batch.rows)
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

    def add_batch(self, batch: Batch, replies: Sequence[Message]) -> None:
        """Count the replies to a batch, one for each row."""
        assert batch.tasks is not None
        is_compared = any(scores.metrics for scores in self._numbered)
        for task, n_examples in enumerate(np.bincount(batch.tasks).tolist()):
            if not is_compared:
                self._numbered[task].n_examples += n_examples
            elif n_examples:
                places = np.flatnonzero(batch.tasks == task)
                own = [replies[place] for place in places.tolist()]
                self._numbered[task].add_batch(batch.take(places), own)

    def report(self) -> Dict[str, Metric]:
        """All together, each task by itself, and the mean over tasks (``merge_tasks``)."""
        return merge_tasks({name: scores.report() for name, scores in self.tasks.items()})

    def reset(self) -> None:
        """Start afresh."""
        for scores in self._numbered:
            scores.reset()
