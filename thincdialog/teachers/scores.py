"""Counts and scores of the replies to a teacher and its copies."""

from array import array
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ..examples.batch import Batch
from ..messages import Message, MessageBatch, column
from ..metrics.accuracy import Accuracy
from ..metrics.exact import exact_sum
from ..metrics.example_metric import ExampleMetric, can_score
from ..metrics.f1 import F1
from ..metrics.macro_metric import merge_tasks
from ..metrics.metric import AverageMetric, Metric, SumMetric, known_means

# Maximum number of batches whose replies stay on a GPU until a report is requested.
MOST_LATER = 64


class Scores:
    """Count examples, and compare replies with labels by the given metrics, separately for each
    of several tasks.

    tasks (Sequence[str]): Names of the tasks; none if there is only one task.
    training (bool): Whether the examples are trained on. Then only replies with a text are scored,
        because an agent may learn from an example without answering it. The default metrics are
        accuracy and F1; in training, accuracy compares texts exactly, like the agent's own.
    """

    def __init__(self, tasks: Sequence[str] = (), training: bool = False):
        self.tasks, self.training = list(tasks), training
        # Tasks, labels and replies of batches that are not scored yet, to avoid waiting for a GPU.
        self._later: List[Tuple[Sequence[int], Sequence[Any], Sequence[Message]]] = []
        # One entry per task.
        self._metrics: List[List[ExampleMetric]] = []
        self.set_metrics([Accuracy(normalize=False if training else None), F1()])
        self.reset()

    def set_metrics(self, metrics: Sequence[ExampleMetric]) -> None:
        """Set the metrics, which are filled in place. Each of several tasks gets its own empty
        metrics with the same settings instead."""
        self._metrics = [list(metrics)]
        if self.tasks:
            self._metrics = [[metric.fresh() for metric in metrics] for _ in self.tasks]

    def fresh(self) -> "Scores":
        """Return empty scores with the same metrics."""
        fresh = Scores(self.tasks, self.training)
        fresh._metrics = [[metric.fresh() for metric in metrics] for metrics in self._metrics]
        return fresh

    def add(self, labels: Optional[Sequence[str]], reply: Message, task: int = 0) -> None:
        """Count one reply. An example without labels is counted, but its reply is not scored unless
        ``can_score`` allows it.

        task (int): Number of the example's task in a mixture; otherwise 0.
        """
        self._n_examples[task] += 1
        if self._metrics[0]:
            self._score([task], [labels], [reply])

    def add_batch(self, batch: Batch, replies: Sequence[Message]) -> None:
        """Count the replies to a batch, one per row."""
        tasks = np.zeros(len(batch.rows), dtype=int) if batch.tasks is None else batch.tasks
        for task, n in enumerate(np.bincount(tasks).tolist()):
            self._n_examples[task] += n
        if not self._metrics[0]:
            return
        self._later.append((tasks.tolist(), batch.store.cells("labels", batch.rows), replies))
        is_on_device = isinstance(replies, MessageBatch) and replies.is_on_device
        if not is_on_device or len(self._later) > MOST_LATER:
            self._score_later()

    def _score_later(self) -> None:
        """Score the replies of the deferred batches."""
        for later in self._later:
            self._score(*later)
        self._later.clear()

    def _score(
        self, tasks: Sequence[int], labels: Sequence[Any], replies: Sequence[Message]
    ) -> None:
        """Score replies, each to an example of a task with some labels."""
        if self.tasks:
            for task, loss in zip(tasks, column(replies, "loss")):
                if loss is not None:
                    self._losses[task].append(loss)
        texts = column(replies, "text") if self.training else None
        for task, metrics in enumerate(self._metrics):
            rows = [
                row
                for row, of in enumerate(tasks)
                if of == task
                and (labels[row] or can_score(labels[row], metrics))
                and (texts is None or texts[row] is not None)
            ]
            if not rows:
                continue
            is_all = len(rows) == len(labels)
            own = labels if is_all else [labels[row] for row in rows]
            own_replies = replies if is_all else [replies[row] for row in rows]
            for metric in metrics:
                metric.add_batch(own, own_replies)

    def report(self) -> Dict[str, Metric]:
        """Return `examples`, the number of replies, and the reports of the metrics. For several
        tasks, return the reports of all tasks together, of each task, and the mean over tasks (see
        ``merge_tasks``); and the loss of each task, and the mean over tasks. The loss of all tasks
        together is the agent's, because it chooses what a label is ranked against."""
        self._score_later()
        reports: List[Dict[str, Metric]] = []
        for n_examples, metrics in zip(self._n_examples, self._metrics):
            found = {name: each for metric in metrics for name, each in metric.report().items()}
            if self.training:
                found = known_means(found)
            reports.append({"examples": SumMetric(n_examples), **found})
        if not self.tasks:
            return reports[0]
        losses = [{"loss": AverageMetric(exact_sum(each), len(each))} for each in self._losses]
        by_task = merge_tasks(dict(zip(self.tasks, map(known_means, losses))))
        of_tasks = {name: metric for name, metric in by_task.items() if "/" in name}
        return {**of_tasks, **merge_tasks(dict(zip(self.tasks, reports)))}

    def reset(self) -> None:
        """Drop all counts and scores."""
        n_tasks = len(self._metrics)
        self._n_examples = [0] * n_tasks
        self._losses = [array("d") for _ in range(n_tasks)]
        self._later.clear()
        for metrics in self._metrics:
            for metric in metrics:
                metric.reset()
