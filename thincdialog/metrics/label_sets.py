"""Scores of sets of labels, for each label and for whole sets."""

from typing import Any, Dict, Sequence

import numpy

from ..messages import Message
from ..registry import registry
from .class_f1 import LabelCounts, MacroF1Metric
from .metric import AverageMetric, Metric


@registry.metrics("thincdialog.LabelSets.v1")
class LabelSets(LabelCounts):
    """Compare all labels of an example with the `predicted_labels` of the reply (or with its text,
    if it has none), for agents that predict several labels per text. Higher is better.

    Reports `micro_f1`, `micro_precision` and `micro_recall`, in which each label of each example
    has the same weight; `macro_f1`, `macro_precision` and `macro_recall`, which are means over the
    labels that occur in the data or in the replies; and `exact_match`, the fraction of examples for
    which all labels are right. All are 0.0 to 1.0.
    """

    compares_sets = True

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one example; it may have no labels."""
        right = set(labels)
        predicted = reply.get("predicted_labels")
        found = set(predicted if predicted is not None else filter(None, [reply.get("text")]))
        self.n_labels.update(right)
        self.n_found.update(found)
        self.n_right.update(right & found)
        self.n_examples += 1
        self.n_exact += right == found

    def report(self) -> Dict[str, Metric]:
        """Return the seven scores."""
        counts = self.n_right, self.n_found, self.n_labels
        right, found, labels = (each.total() for each in counts)
        return {
            "micro_f1": MicroMetric(2 * right, found + labels),
            "micro_precision": MicroMetric(right, found),
            "micro_recall": MicroMetric(right, labels),
            "macro_f1": MacroF1Metric(*counts),
            "macro_precision": MacroPrecisionMetric(*counts),
            "macro_recall": MacroRecallMetric(*counts),
            "exact_match": AverageMetric(self.n_exact, self.n_examples),
        }

    def reset(self) -> None:
        """Forget all counts."""
        super().reset()
        self.n_examples = self.n_exact = 0


class MicroMetric(AverageMetric):
    """Compute a quotient of counts over all examples, which is not the mean of the examples'
    quotients."""

    def value(self) -> float:
        """Return the quotient; 0.0 while the numerator is 0."""
        return super().value()


class MacroPrecisionMetric(MacroF1Metric):
    """Compute the mean of the precision of all labels; 0.0 for a label that is never predicted."""

    def score(self, right: Any, found: Any, labels: Any) -> Any:
        """Compute the precision of one label."""
        return right / numpy.maximum(found, 1)


class MacroRecallMetric(MacroF1Metric):
    """Compute the mean of the recall of all labels; 0.0 for a label that is predicted, but never
    right."""

    def score(self, right: Any, found: Any, labels: Any) -> Any:
        """Compute the recall of one label."""
        return right / numpy.maximum(labels, 1)
