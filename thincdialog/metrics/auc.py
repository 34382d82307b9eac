"""Area under the ROC curve: whether examples of a class get higher probabilities for it."""

import math
from array import array
from typing import Any, Dict, Mapping, Sequence

import numpy

from ..messages import Message, column
from ..registry import registry
from .example_metric import ExampleMetric
from .metric import Metric, merged

Scores = Dict[str, array]


@registry.metrics("thincdialog.AUC.v1")
class AUC(ExampleMetric):
    """Measure the chance that an example of a class gets a higher probability for the class than an
    example of another class, where ties count half; averaged over classes. Higher is better; 0.5
    is random guessing.

    Reads `classes` and `probabilities` (one for each class) from a reply, which classifiers set.
    A reply without them is not counted, such as a ranker's, whose scores cannot be compared
    between examples. Classes that all examples have, or none, are left out. The metric keeps every
    probability: 8 bytes for each example and class.

    Reports `auc`, 0.0 to 1.0.

    SOURCE: Hanley and McNeil 1982, https://doi.org/10.1148/radiology.143.1.7063747
    """

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one example."""
        self.add_batch([labels], [reply])

    def add_batch(self, labels: Sequence[Sequence[str]], replies: Sequence[Message]) -> None:
        """Count many examples, reading only two columns."""
        columns = (column(replies, name) for name in ("classes", "probabilities"))
        for right, classes, probabilities in zip(labels, *columns):
            if classes is None or probabilities is None:
                continue
            for name, probability in zip(classes, probabilities):
                scores = self.inside if name in right else self.outside
                if name not in scores:
                    scores[name] = array("d")
                scores[name].append(probability)

    def report(self) -> Dict[str, Metric]:
        """Return `auc`; empty if no reply had probabilities, as for rankers."""
        if not self.inside and not self.outside:
            return {}
        return {"auc": AUCValue(self.inside, self.outside)}

    def reset(self) -> None:
        """Forget all probabilities."""
        self.inside: Scores = {}
        self.outside: Scores = {}


class AUCValue(Metric):
    """Hold the probabilities of all classes, and return the mean of their areas.

    inside (Mapping[str, array]): Class name to the probabilities of the class in its own examples.
    outside (Mapping[str, array]): Class name to its probabilities in all other examples.
    """

    higher_is_better = True

    def __init__(self, inside: Mapping[str, array], outside: Mapping[str, array]):
        self.inside = {name: _sorted(values) for name, values in inside.items()}
        self.outside = {name: _sorted(values) for name, values in outside.items()}

    def value(self) -> float:
        """Return the mean area, 0.0 to 1.0; 0.0 if no class has both kinds of examples."""
        names = [name for name in self.inside if name in self.outside]
        areas = (area(self.inside[name], self.outside[name]) for name in names)
        # fsum rounds once, so the order of the classes does not matter.
        return math.fsum(areas) / max(1, len(names))

    def __add__(self, other: "AUCValue") -> "AUCValue":
        return type(self)(merged(self.inside, other.inside), merged(self.outside, other.outside))


def area(inside: Any, outside: Any) -> float:
    """Return the fraction of all pairs in which the value inside is higher; ties count half.

    inside (Sequence[float]): Values inside, at least one.
    outside (Sequence[float]): Values outside, at least one, sorted.
    """
    below = numpy.searchsorted(outside, inside, side="left")
    not_above = numpy.searchsorted(outside, inside, side="right")
    twice = int(below.sum()) + int(not_above.sum())
    return twice / (2 * len(inside) * len(outside))


def _sorted(values: array) -> array:
    return array("d", numpy.sort(values).tobytes())
