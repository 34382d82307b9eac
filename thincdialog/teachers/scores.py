"""What a teacher and its copies counted about the replies they got."""

from typing import Dict, List, Sequence

import numpy as np

from ..examples.batch import Batch
from ..messages import Message
from ..metrics.example_metric import ExampleMetric
from ..metrics.macro_metric import merge_tasks
from ..metrics.metric import Metric, SumMetric


class Scores:
    """Counts examples, and compares replies with labels by the metrics it was given; those of
    several tasks each by itself.

    tasks (Sequence[str]): Their names; none if there is one task only.
    """

    def __init__(self, tasks: Sequence[str] = ()):
        self.tasks = list(tasks)
        n_tasks = max(1, len(self.tasks))
        # Of each task.
        self._metrics: List[List[ExampleMetric]] = [[] for _ in range(n_tasks)]
        self._n_examples = [0] * n_tasks

    def set_metrics(self, metrics: Sequence[ExampleMetric]) -> None:
        """Compare by these from now on; they are filled in place. Each of several tasks has
        empty ones of the same settings for itself."""
        self._metrics = [list(metrics)]
        if self.tasks:
            self._metrics = [[metric.fresh() for metric in metrics] for _ in self.tasks]

    def fresh(self) -> "Scores":
        """Empty ones of the same metrics."""
        fresh = Scores(self.tasks)
        fresh._metrics = [[metric.fresh() for metric in metrics] for metrics in self._metrics]
        return fresh

    def add(self, labels: Sequence[str], reply: Message, task: int = 0) -> None:
        """Count one reply. An example without labels is counted and not compared.

        task (int): Number of its task, in a mixture.
        """
        self._n_examples[task] += 1
        if labels:
            for metric in self._metrics[task]:
                metric.add(labels, reply)

    def add_batch(self, batch: Batch, replies: Sequence[Message]) -> None:
        """Count the replies to a batch, one for each row."""
        if batch.tasks is None:
            self._n_examples[0] += len(batch.rows)
        else:
            for task, n in enumerate(np.bincount(batch.tasks).tolist()):
                self._n_examples[task] += n
        if not self._metrics[0]:
            return
        labels = batch.store.cells("labels", batch.rows)
        tasks = [0] * len(labels) if batch.tasks is None else batch.tasks.tolist()
        for task, metrics in enumerate(self._metrics):
            rows = [row for row, of in enumerate(tasks) if of == task and labels[row]]
            is_all = len(rows) == len(labels)
            own = labels if is_all else [labels[row] for row in rows]
            told = replies if is_all else [replies[row] for row in rows]
            for metric in metrics:
                metric.add_batch(own, told)

    def report(self) -> Dict[str, Metric]:
        """`examples`, a count of replies, and what the metrics report; of several tasks all
        together, each by itself, and the mean over tasks (``merge_tasks``)."""
        reports: List[Dict[str, Metric]] = []
        for n_examples, metrics in zip(self._n_examples, self._metrics):
            reports.append({"examples": SumMetric(n_examples)})
            for metric in metrics:
                reports[-1].update(metric.report())
        return merge_tasks(dict(zip(self.tasks, reports))) if self.tasks else reports[0]

    def reset(self) -> None:
        """Start afresh."""
        self._n_examples = [0] * len(self._n_examples)
        for metrics in self._metrics:
            for metric in metrics:
                metric.reset()
