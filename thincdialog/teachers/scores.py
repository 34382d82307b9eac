"""Counts and scores of the replies to a teacher and its copies."""

from array import array
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ..examples.batch import Batch
from ..messages import Message, MessageBatch, column
from ..metrics.exact import exact_sum
from ..metrics.example_metric import ExampleMetric, can_score
from ..metrics.macro_metric import merge_tasks
from ..metrics.metric import AverageMetric, Metric, SumMetric

# Most batches whose replies stay on a GPU until a report is requested.
MOST_LATER = 64


class ReplyTotals:
    """Count losses and right replies of the examples of a task."""

    def __init__(self) -> None:
        self.losses = array("d")
        self.n_right = self.n_answered = 0

    def add(self, labels: Optional[Sequence[str]], text: Optional[str], loss: Any) -> None:
        """Count the loss and the text of a reply, if it has them."""
        if loss is not None:
            self.losses.append(loss)
        if labels and text is not None:
            self.n_answered += 1
            self.n_right += text == labels[0]

    def report(self, with_accuracy: bool) -> Dict[str, Metric]:
        """Return the mean loss, and the accuracy if requested; each only if it has values."""
        found: Dict[str, Metric] = {}
        if self.losses:
            found["loss"] = AverageMetric(exact_sum(self.losses), len(self.losses))
        if with_accuracy and self.n_answered:
            found["accuracy"] = AverageMetric(self.n_right, self.n_answered)
        return found


class Scores:
    """Count examples, and compare replies with labels by the given metrics, separately for each
    of several tasks.

    tasks (Sequence[str]): Names of the tasks; none if there is only one task.
    training (bool): Whether the examples are trained on. Then the report has the accuracy of each
        of several tasks, whatever the metrics are. It has no loss or accuracy of all examples
        together: the agent reports these, because it chooses what a label is ranked against.
    """

    def __init__(self, tasks: Sequence[str] = (), training: bool = False):
        self.tasks, self.training = list(tasks), training
        n_tasks = max(1, len(self.tasks))
        self._told = [ReplyTotals() for _ in self.tasks]
        # Tasks, labels and replies of batches that are not counted yet, to avoid waiting for a GPU.
        self._later: List[Tuple[List[int], Sequence[Any], Sequence[Message]]] = []
        # One entry per task.
        self._metrics: List[List[ExampleMetric]] = [[] for _ in range(n_tasks)]
        self._n_examples = [0] * n_tasks

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
        if labels is not None and can_score(labels, self._metrics[task]):
            for metric in self._metrics[task]:
                metric.add(labels, reply)
        if self.tasks:
            self._told[task].add(labels, reply.get("text"), reply.get("loss"))

    def add_batch(self, batch: Batch, replies: Sequence[Message]) -> None:
        """Count the replies to a batch, one per row."""
        if batch.tasks is None:
            self._n_examples[0] += len(batch.rows)
        else:
            for task, n in enumerate(np.bincount(batch.tasks).tolist()):
                self._n_examples[task] += n
        if not self._metrics[0] and not self.tasks:
            return
        labels = batch.store.cells("labels", batch.rows)
        tasks = [0] * len(labels) if batch.tasks is None else batch.tasks.tolist()
        if self.tasks:
            self._later.append((tasks, labels, replies))
            is_on_device = isinstance(replies, MessageBatch) and replies.is_on_device
            if not is_on_device or len(self._later) > MOST_LATER:
                self._read()
        for task, metrics in enumerate(self._metrics):
            if not metrics:
                continue
            rows = [
                row
                for row, of in enumerate(tasks)
                if of == task and (labels[row] or can_score(labels[row], metrics))
            ]
            is_all = len(rows) == len(labels)
            own = labels if is_all else [labels[row] for row in rows]
            told = replies if is_all else [replies[row] for row in rows]
            for metric in metrics:
                metric.add_batch(own, told)

    def _read(self) -> None:
        """Count the replies of the deferred batches."""
        for tasks, labels, replies in self._later:
            texts, losses = column(replies, "text"), column(replies, "loss")
            for task, right, text, loss in zip(tasks, labels, texts, losses):
                self._told[task].add(right, text, loss)
        self._later.clear()

    def report(self) -> Dict[str, Metric]:
        """Return `examples`, the number of replies, and the reports of the metrics. For several
        tasks, return the reports of all tasks together, of each task, and the mean over tasks (see
        ``merge_tasks``)."""
        reports: List[Dict[str, Metric]] = []
        for n_examples, metrics in zip(self._n_examples, self._metrics):
            reports.append({"examples": SumMetric(n_examples)})
            for metric in metrics:
                reports[-1].update(metric.report())
        if not self.tasks:
            return reports[0]
        self._read()
        told = [told.report(self.training) for told in self._told]
        by_task = merge_tasks(dict(zip(self.tasks, told)))
        of_tasks = {name: metric for name, metric in by_task.items() if "/" in name}
        return {**of_tasks, **merge_tasks(dict(zip(self.tasks, reports)))}

    def reset(self) -> None:
        """Drop all counts and scores."""
        self._n_examples = [0] * len(self._n_examples)
        self._told = [ReplyTotals() for _ in self.tasks]
        self._later.clear()
        for metrics in self._metrics:
            for metric in metrics:
                metric.reset()
