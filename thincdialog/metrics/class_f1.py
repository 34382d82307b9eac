"""F1 of classes, averaged over the classes."""

import math
from collections import Counter
from typing import Any, Dict, Optional, Sequence

import numpy

from ..messages import Message
from ..registry import registry
from .example_metric import ExampleMetric
from .metric import Metric, Sums


class LabelCounts(ExampleMetric):
    """Count, for each label, how often it is right, predicted and expected. Base of scores that are
    computed from these counts."""

    def reset(self) -> None:
        """Forget all counts."""
        self.n_right: Counter = Counter()
        self.n_found: Counter = Counter()
        self.n_labels: Counter = Counter()


@registry.metrics("thincdialog.ClassF1.v1")
class ClassF1(LabelCounts):
    """Compute F1 of each class, averaged over classes; higher is better.

    The true class of an example is its label (if it has several: the one replied, else the first).
    The predicted class is the reply's text; both are compared unchanged. All texts that occur as
    either are classes. A reply without text predicts no class.

    Reports `macro_f1`, in which all classes have the same weight, and `weighted_f1`, in which a
    class is weighted by the number of its examples; 0.0 to 1.0.
    """

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one example."""
        found = reply.get("text")
        label = class_of(labels, found)
        self.n_labels[label] += 1
        if found is not None:
            self.n_found[found] += 1
            self.n_right[label] += found == label

    def report(self) -> Dict[str, Metric]:
        """Return `macro_f1` and `weighted_f1`."""
        counts = (self.n_right, self.n_found, self.n_labels)
        return {"macro_f1": MacroF1Metric(*counts), "weighted_f1": WeightedF1Metric(*counts)}


def class_of(labels: Sequence[str], found: Optional[str]) -> str:
    """Return the true class of an example.

    labels (Sequence[str]): At least one.
    found (Optional[str]): The class that was replied.
    """
    return found if found is not None and found in labels else labels[0]


class MacroF1Metric(Metric):
    """Compute the mean of the F1 of all classes.

    n_right (Mapping[str, int]): Number of examples of the class for which it was replied.
    n_found (Mapping[str, int]): Number of examples for which the class was replied.
    n_labels (Mapping[str, int]): Number of examples of the class.
    """

    higher_is_better = True
    summed = ("n_right", "n_found", "n_labels")

    def __init__(self, n_right: Counter, n_found: Counter, n_labels: Counter):
        self.n_right = Counter(n_right)
        self.n_found = Counter(n_found)
        self.n_labels = Counter(n_labels)

    def value(self) -> float:
        """Return the mean, 0.0 to 1.0; 0.0 without examples."""
        shares, total = [], 0
        for name in self.n_labels + self.n_found:
            found, labels = self.n_found[name], self.n_labels[name]
            weight = int(self.weight(found + labels, labels))
            shares.append(self.score(self.n_right[name], found, labels) * weight)
            total += weight
        # fsum rounds once, so the order of the classes does not matter.
        return math.fsum(shares) / total if total else 0.0

    def sums(self) -> Optional[Sums]:
        """Return the nonzero counts by kind and class."""
        counts = {"right": self.n_right, "found": self.n_found, "labels": self.n_labels}
        return {(kind, name): n for kind, by in counts.items() for name, n in by.items() if n}

    def value_of(self, sums: Sums) -> numpy.ndarray:
        """Return the means. Each resample is averaged over the classes that occur in it."""
        total: Any = 0.0
        weight: Any = 0.0
        # In a fixed order, because workers count classes in any order.
        for name in sorted(self.n_labels + self.n_found):
            right, found, labels = (sums.get((k, name), 0.0) for k in ("right", "found", "labels"))
            of_class = self.weight(numpy.asarray(found + labels), labels)
            total = total + of_class * self.score(right, found, labels)
            weight = weight + of_class
        return total / numpy.maximum(weight, 1)

    def score(self, right: Any, found: Any, labels: Any) -> Any:
        """Compute the score of one class from its counts; for arrays of resamples, one score
        each."""
        return 2 * right / numpy.maximum(found + labels, 1)

    def weight(self, n: Any, labels: Any) -> Any:
        """Return the weight of a class; for arrays of resamples, one weight each.

        n (Union[int, numpy.ndarray]): How often the class is a label or a reply.
        labels (Union[int, numpy.ndarray]): How often it is a label.
        """
        return n > 0


class WeightedF1Metric(MacroF1Metric):
    """Compute the mean of the F1 of all classes, weighted by the number of their examples."""

    def weight(self, n: Any, labels: Any) -> Any:
        """Return the number of the class's examples."""
        return labels
