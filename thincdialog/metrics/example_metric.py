"""The interface of a metric that counts example by example."""

from copy import copy
from typing import Any, Dict, List, Optional, Sequence, TypeVar

from ..contract import Contract, Returned, has_run, holds
from ..errors import ConfigError, Problem
from ..messages import Message, column
from ..registry import registry
from .exact import ExactSum
from .metric import AverageMetric, Metric

ExampleMetricT = TypeVar("ExampleMetricT", bound="ExampleMetric")


class ExampleMetric(Contract):
    """Compare replies with labels and count; register a subclass with ``registry.metrics``.

    The counts must be exact (ints, ``ExactSum``), so that a report does not depend on the order of
    the examples or on their distribution among workers.

    A subclass implements ``add``, ``report`` and ``reset``; its ``__init__`` keeps settings and
    calls ``reset``. A value that is reported as an ``AverageMetric`` (or another ``Metric`` with
    ``sums``) gets confidence intervals and paired comparisons.
    """

    returns = {
        "add": Returned("nothing, and not yield", has_run),
        "report": Returned('metrics by their names: {"name": AverageMetric(3, 4)}', holds(Metric)),
    }

    # Number of candidates of a reply's ranking (``text_candidates``) that the metric reads. The
    # agents of this package rank at least 100.
    n_ranked: int = 0
    # Whether the metric compares all labels with all `predicted_labels` of a reply. Then it also
    # counts examples that are known to have no label.
    compares_sets: bool = False

    def __init__(self) -> None:
        self.reset()

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one example.

        labels (Sequence[str]): Right answers; at least one, unless the metric ``compares_sets``.
        reply (Message): Reply of the agent. A reply without ``text`` (and without
            ``text_candidates``) is wrong for any label.
        """
        raise NotImplementedError

    def add_batch(self, labels: Sequence[Sequence[str]], replies: Sequence[Message]) -> None:
        """Count many examples, with one reply for each. The result is the same as with ``add`` for
        each; a subclass overrides it if it can be faster with columns (``MessageBatch``)."""
        for row, reply in zip(labels, replies):
            self.add(row, reply)

    def report(self) -> Dict[str, Metric]:
        """Return the metrics by name. All names must be present even before the first example."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget all counts."""
        raise NotImplementedError

    def fresh(self: ExampleMetricT) -> ExampleMetricT:
        """Return an empty metric with the same settings."""
        empty = copy(self)
        empty.reset()
        return empty


registry.metrics.makes(ExampleMetric)


def can_score(labels: Optional[Sequence[str]], metrics: Sequence[ExampleMetric]) -> bool:
    """Return whether the metrics can score replies to an example with these labels.

    labels (Optional[Sequence[str]]): Labels of the example; None if they are not known.
    """
    has_none = labels is not None and any(metric.compares_sets for metric in metrics)
    return bool(labels) or has_none


def distinct_numbers(
    metric: str, setting: str, given: Optional[List[int]], default: List[int]
) -> List[int]:
    """Return the distinct numbers of a setting, in ascending order.

    given (Optional[List[int]]): Value from the config; None for the default.
    RAISES (ConfigError): If there are no numbers, or one is less than 1.
    """
    numbers = default if given is None else given
    if not numbers or min(numbers) < 1:
        text = f"'{setting}' of {metric} is {numbers}"
        raise ConfigError([Problem("", text, "give one or more numbers of at least 1")])
    return sorted(set(numbers))


class ExampleAverages(ExampleMetric):
    """Average scores over examples. A subclass defines ``names``, and the ``scores`` of an
    example."""

    names: Sequence[str] = ()

    def scores(self, labels: Sequence[str], reply: Message) -> Sequence[Any]:
        """Return one number for each name, or an empty sequence if all are 0."""
        raise NotImplementedError

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one example."""
        self.n_examples += 1
        self.add_scores(self.scores(labels, reply))

    def add_scores(self, scores: Sequence[Any]) -> None:
        """Add the scores of an example that is already counted."""
        if any(scores):
            for total, score in zip(self.totals, scores):
                if score:
                    total.add(score)

    def report(self) -> Dict[str, Metric]:
        """Return the averages."""
        pairs = zip(self.names, self.totals)
        return {name: AverageMetric(total, self.n_examples) for name, total in pairs}

    def reset(self) -> None:
        """Forget all sums."""
        self.n_examples = 0
        self.totals: List[ExactSum] = [ExactSum() for _ in self.names]


class TextAverages(ExampleAverages):
    """Average scores that depend only on the text of a reply, and are 0 without a text. A subclass
    defines ``names``, and the ``text_scores`` of a text."""

    def text_scores(self, labels: Sequence[str], text: str) -> Sequence[Any]:
        """Return one number for each name, or an empty sequence if all are 0."""
        raise NotImplementedError

    def scores(self, labels: Sequence[str], reply: Message) -> Sequence[Any]:
        """Return the scores of the reply's text."""
        text = reply.get("text")
        return () if text is None else self.text_scores(labels, text)

    def add_batch(self, labels: Sequence[Sequence[str]], replies: Sequence[Message]) -> None:
        """Count many examples, reading only the column of texts."""
        self.n_examples += len(replies)
        for row, text in zip(labels, column(replies, "text")):
            if text is not None:
                self.add_scores(self.text_scores(row, text))
