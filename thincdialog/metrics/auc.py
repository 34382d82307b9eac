"""Area under the ROC curve: do examples of a class get higher probabilities for it?"""

import math
from array import array
from typing import Dict, Mapping, Sequence

import numpy

from ..messages import Message, column
from ..registry import registry
from .example_metric import ExampleMetric
from .metric import Metric, merged

Scores = Dict[str, array]


@registry.metrics("thincdialog.AUC.v1")
class AUC(ExampleMetric):
    """Chance that an example of a class gets a higher probability for it than one of another
    class, ties counting half; the mean over classes. Higher is better, 0.5 is a guess.

    Reads from a reply `classes` and `probabilities` (of each of them), as classifiers
    give; a reply without them (a ranker's, whose scores cannot be compared between
    examples) is not counted. Classes that all examples have, or none, are left out. Keeps
    every probability: 8 bytes for each example and class.

    Reports `auc`, 0.0 to 1.0.

    SOURCE: Hanley and McNeil 1982, https://doi.org/10.1148/radiology.143.1.7063747
    """

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one example."""
        self.add_batch([labels], [reply])

    def add_batch(self, labels: Sequence[Sequence[str]], replies: Sequence[Message]) -> None:
        """Count many examples; reads only two columns."""
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
        """`auc`; nothing if no reply had probabilities, as those of rankers."""
        if not self.inside and not self.outside:
            return {}
        return {"auc": AUCValue(self.inside, self.outside)}

    def reset(self) -> None:
        """Forget all probabilities."""
        self.inside: Scores = {}
        self.outside: Scores = {}


class AUCValue(Metric):
    """Mean of the areas of all classes, from the probabilities that were given to a class.

    inside (Mapping[str, array]): Class name to those of its own examples.
    outside (Mapping[str, array]): Class name to those of all other examples.
    """

    higher_is_better = True

    def __init__(self, inside: Mapping[str, array], outside: Mapping[str, array]):
        self.inside = {name: _sorted(values) for name, values in inside.items()}
        self.outside = {name: _sorted(values) for name, values in outside.items()}

    def value(self) -> float:
        """The mean, 0.0 to 1.0; 0.0 without a class that has both."""
        names = [name for name in self.inside if name in self.outside]
        if not names:
            return 0.0
        areas = (area(self.inside[name], self.outside[name]) for name in names)
        # fsum rounds once, so the order of the classes does not matter.
        return math.fsum(areas) / len(names)

    def __add__(self, other: "AUCValue") -> "AUCValue":
        return type(self)(merged(self.inside, other.inside), merged(self.outside, other.outside))


def area(inside: Sequence[float], outside: Sequence[float]) -> float:
    """Share of all pairs in which the one inside is higher, ties counting half.

    inside (Sequence[float]): At least one.
    outside (Sequence[float]): At least one, sorted.
    """
    below = numpy.searchsorted(outside, inside, side="left")
    not_above = numpy.searchsorted(outside, inside, side="right")
    twice = int(below.sum()) + int(not_above.sum())
    return twice / (2 * len(inside) * len(outside))


def _sorted(values: array) -> array:
    return array("d", numpy.sort(values).tobytes())
