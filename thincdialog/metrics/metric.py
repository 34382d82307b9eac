"""Metrics: values that can be merged exactly, and which direction is better.

A report is a dict from a metric's name to a ``Metric``. Reports of parts of the data, of workers or
of steps are merged by ``+``. The result is the same bit for bit for any parts and any order,
because nothing is rounded before ``value()``.
"""

import math
import re
from copy import copy
from functools import reduce
from numbers import Real
from typing import Any, Dict, Hashable, Mapping, Optional, Tuple, TypeVar, Union

import numpy

from ..contract import Contract, Returned, is_kind
from .exact import ExactSum

Number = Union[int, float, ExactSum]
# The sums that a value is computed from, by name: one number each, or one per resample.
Sums = Mapping[Hashable, Any]
MetricT = TypeVar("MetricT", bound="Metric")
Report = Mapping[str, "Metric"]

# Patterns for names of metrics (the last part of names such as `task/accuracy`): fractions, 0.0 to
# 1.0, and metrics of which a higher or a lower value is better.
SHARE = re.compile(
    r"hits@\d+|(intra_)?distinct_\d+|rouge_l|exact_match|(.*_)?(accuracy|precision|recall|f1|mrr|auc)"
)
HIGHER = re.compile(rf"{SHARE.pattern}|bleu|(.*_)?per_second")
LOWER = re.compile(r"(.*_)?(loss|loss_per_\w+|perplexity|padding_fraction|truncated|truncated_\w+)")


class Metric(Contract):
    """Hold a value that can be merged with others of its kind.

    higher_is_better (Optional[bool]): Set by a subclass whose name does not imply its direction.
    summed (Tuple[str, ...]): Names of the attributes that ``+`` adds (see ``merged``). A
        subclass without them implements ``+`` itself.
    """

    returns = {"value": Returned("a number", is_kind(Real))}
    higher_is_better: Optional[bool] = None
    summed: Tuple[str, ...] = ()

    def value(self) -> float:
        """Return the value, rounded once."""
        raise NotImplementedError

    def __add__(self: MetricT, other: MetricT) -> MetricT:
        """Return the metric of both parts together; neither is changed."""
        if not self.summed:
            raise NotImplementedError
        both = copy(self)
        for name in self.summed:
            setattr(both, name, merged(getattr(self, name), getattr(other, name)))
        return both

    def sums(self) -> Optional[Sums]:
        """Return the sums from which the value is computed. The sums of all examples together must
        be the sums over the examples. None if the value cannot be computed from sums; it then has
        no interval."""
        return None

    def value_of(self, sums: Sums) -> numpy.ndarray:
        """Return the values that resamples of the examples would have.

        sums (Sums): Sums of each resample, shape (n_resamples,), float64.
        RETURNS (numpy.ndarray): Shape (n_resamples,).
        """
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value():.6g})"


class SumMetric(Metric):
    """Hold a sum, for instance the number of examples.

    total (Union[int, float, ExactSum]): The sum so far.
    """

    summed = ("total",)

    def __init__(self, total: Number = 0):
        self.total = _exact(total)

    def value(self) -> float:
        """Return the sum."""
        return float(self.total)


class AverageMetric(Metric):
    """Hold a quotient of two sums, which is 0.0 while the numerator is 0.

    numerator (Union[int, float, ExactSum]): Sum of the values.
    denominator (Union[int, float, ExactSum]): Number of values, or sum of their weights.
    """

    summed = ("numerator", "denominator")

    def __init__(self, numerator: Number = 0, denominator: Number = 0):
        self.numerator = _exact(numerator)
        self.denominator = _exact(denominator)

    def value(self) -> float:
        """Return the quotient; NaN if only the denominator is 0."""
        if not self.numerator:
            return 0.0
        if not self.denominator:
            return math.nan
        return self.numerator / self.denominator

    def sums(self) -> Optional[Sums]:
        """Return numerator and denominator."""
        return {"numerator": float(self.numerator), "denominator": float(self.denominator)}

    def value_of(self, sums: Sums) -> numpy.ndarray:
        """Return the quotients."""
        numerator, denominator = sums["numerator"], sums["denominator"]
        with numpy.errstate(divide="ignore", invalid="ignore"):
            return numpy.where(numerator == 0, 0.0, numerator / denominator)


class PerplexityMetric(AverageMetric):
    """Compute exp(loss / tokens); lower is better.

    numerator (Union[int, float, ExactSum]): Summed loss in nats.
    denominator (Union[int, float, ExactSum]): Number of tokens.
    """

    higher_is_better = False

    def value(self) -> float:
        """Return the perplexity, 1.0 or more; infinity if it exceeds a double."""
        try:
            return math.exp(super().value())
        except OverflowError:
            return math.inf

    def value_of(self, sums: Sums) -> numpy.ndarray:
        """Return exp of the quotients."""
        with numpy.errstate(over="ignore"):
            return numpy.exp(super().value_of(sums))


def higher_is_better(
    name: str, metric: Optional[Metric] = None, direction: str = "auto"
) -> Optional[bool]:
    """Return whether a larger value of a metric is better.

    name (str): Name in a report, for instance "hits@1" or "dialogue/accuracy".
    metric (Optional[Metric]): The metric itself, if available; its ``higher_is_better`` takes
        precedence over the name.
    direction (str): Setting ``[training] score_direction``: "max" or "min", which decides alone, or
        "auto".
    RETURNS (Optional[bool]): None if neither the metric nor its name implies a direction.
    """
    if direction in ("max", "min"):
        return direction == "max"
    if metric is not None and metric.higher_is_better is not None:
        return metric.higher_is_better
    last = name.rpartition("/")[2]
    return True if HIGHER.fullmatch(last) else False if LOWER.fullmatch(last) else None


def is_share(name: str) -> bool:
    """Return whether a metric is a fraction, 0.0 to 1.0, whose differences are shown in percentage
    points.

    name (str): Name in a report, for instance "hits@1" or "dialogue/accuracy".
    """
    return SHARE.fullmatch(name.rpartition("/")[2]) is not None


def merge_reports(*reports: Report) -> Dict[str, Metric]:
    """Merge reports of all parts; a name that is missing from a report adds nothing."""
    nothing: Dict[str, Metric] = {}
    return reduce(merged, map(dict, reports), nothing)


def known_means(report: Report) -> Dict[str, Metric]:
    """Return a report without the means of no values."""
    return {
        name: metric
        for name, metric in report.items()
        if not isinstance(metric, AverageMetric) or metric.denominator
    }


def report_values(report: Report) -> Dict[str, float]:
    """Return the values of a report, by name."""
    return {name: metric.value() for name, metric in report.items()}


def merged(one: Any, other: Any) -> Any:
    """Return the counts of two parts together; neither is changed.

    one, other (Any): Numbers or exact sums, which are added; arrays, which are concatenated; sets,
        which are united; or tuples, lists and dicts of these, merged item by item.
    """
    if isinstance(one, dict):
        both = {key: copy(value) for key, value in {**one, **other}.items()}
        both.update((key, merged(one[key], other[key])) for key in one.keys() & other.keys())
        return type(one)(both)
    if isinstance(one, (tuple, list)):
        return type(one)(map(merged, one, other))
    return one | other if isinstance(one, (set, frozenset)) else one + other


def _exact(value: Any) -> ExactSum:
    return value + ExactSum() if isinstance(value, ExactSum) else ExactSum(value)
