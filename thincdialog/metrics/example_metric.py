"""The contract of a metric that is counted example by example."""

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
    """Compares replies with labels and counts; register one with ``registry.metrics``.

    The counts must be exact (ints, ``ExactSum``), so that a report never depends
    on the order of the examples or on who counted which.

    A subclass gives ``add``, ``report`` and ``reset``; an ``__init__`` keeps settings and
    calls ``reset``. What is reported as an ``AverageMetric`` (or another ``Metric`` with
    ``sums``) gets intervals and is compared directly.
    """

    returns = {
        "add": Returned("nothing, and not yield", has_run),
        "report": Returned('metrics by their names: {"name": AverageMetric(3, 4)}', holds(Metric)),
    }

    # How many candidates of a reply's ranking (``text_candidates``) it looks at; our agents rank at
    # least 100.
    n_ranked: int = 0
    # Whether it compares all labels with all `predicted_labels` of a reply; then it also counts
    # examples that are known to have no label.
    compares_sets: bool = False

    def __init__(self) -> None:
        self.reset()

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one example.

        labels (Sequence[str]): What would have been right; at least one, unless it
            ``compares_sets``.
        reply (Message): What the agent answered. One without ``text`` (and without
            ``text_candidates``) is wrong, whatever the label.
        """
        raise NotImplementedError

    def add_batch(self, labels: Sequence[Sequence[str]], replies: Sequence[Message]) -> None:
        """Count many examples, one reply for each. The same as ``add`` for each;
        a family whose loop can use columns (``MessageBatch``) overrides it."""
        for row, reply in zip(labels, replies):
            self.add(row, reply)

    def report(self) -> Dict[str, Metric]:
        """Name to metric. All names are there before the first example, too."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget all counts."""
        raise NotImplementedError

    def fresh(self: ExampleMetricT) -> ExampleMetricT:
        """An empty one with the same settings."""
        empty = copy(self)
        empty.reset()
        return empty


registry.metrics.makes(ExampleMetric)


def can_score(labels: Optional[Sequence[str]], metrics: Sequence[ExampleMetric]) -> bool:
    """Whether metrics can compare replies to an example with its labels.

    labels (Optional[Sequence[str]]): None if they are not known.
    """
    has_none = labels is not None and any(metric.compares_sets for metric in metrics)
    return bool(labels) or has_none


def distinct_numbers(
    metric: str, setting: str, given: Optional[List[int]], default: List[int]
) -> List[int]:
    """The different numbers of a setting, ascending.

    given (Optional[List[int]]): From the config; the default if None.
    RAISES (ConfigError): If there is none, or one is less than 1.
    """
    numbers = default if given is None else given
    if not numbers or min(numbers) < 1:
        text = f"'{setting}' of {metric} is {numbers}"
        raise ConfigError([Problem("", text, "give one or more numbers of at least 1")])
    return sorted(set(numbers))


class ExampleAverages(ExampleMetric):
    """Base of averages over examples: a subclass gives ``names``, and an example's ``scores``."""

    names: Sequence[str] = ()

    def scores(self, labels: Sequence[str], reply: Message) -> Sequence[Any]:
        """One number for each name, or none where all are 0."""
        raise NotImplementedError

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one example."""
        self.n_examples += 1
        self.add_scores(self.scores(labels, reply))

    def add_scores(self, scores: Sequence[Any]) -> None:
        """Add the scores of an example that is counted already."""
        if any(scores):
            for total, score in zip(self.totals, scores):
                if score:
                    total.add(score)

    def report(self) -> Dict[str, Metric]:
        """The averages."""
        pairs = zip(self.names, self.totals)
        return {name: AverageMetric(total, self.n_examples) for name, total in pairs}

    def reset(self) -> None:
        """Forget all sums."""
        self.n_examples = 0
        self.totals: List[ExactSum] = [ExactSum() for _ in self.names]


class TextAverages(ExampleAverages):
    """Base of averages that look only at the text of a reply, and are 0 where it has none: a
    subclass gives ``names``, and the ``text_scores`` of a text."""

    def text_scores(self, labels: Sequence[str], text: str) -> Sequence[Any]:
        """One number for each name, or none where all are 0."""
        raise NotImplementedError

    def scores(self, labels: Sequence[str], reply: Message) -> Sequence[Any]:
        """The scores of its text."""
        text = reply.get("text")
        return () if text is None else self.text_scores(labels, text)

    def add_batch(self, labels: Sequence[Sequence[str]], replies: Sequence[Message]) -> None:
        """Count many examples; reads only the column of texts."""
        self.n_examples += len(replies)
        for row, text in zip(labels, column(replies, "text")):
            if text is not None:
                self.add_scores(self.text_scores(row, text))
