"""Metrics: values that can be merged exactly, and which direction is better.

A report is a dict from a metric's name to a ``Metric``. Reports of parts of the
data, of workers or of steps are merged by ``+``; the outcome is the same in every
bit for any parts and any order, because nothing is rounded before ``value()``.
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
# What a value is made of, by name: one number each, or one for each of many resamples.
Sums = Mapping[Hashable, Any]
MetricT = TypeVar("MetricT", bound="Metric")
Report = Mapping[str, "Metric"]

# Names (their last part, for names such as `task/accuracy`) by what is better.
SHARE = re.compile(
    r"hits@\d+|(intra_)?distinct_\d+|rouge_l|exact_match|(.*_)?(accuracy|precision|recall|f1|mrr|auc)"
)
HIGHER = re.compile(rf"{SHARE.pattern}|bleu|(.*_)?per_second")
LOWER = re.compile(r"(.*_)?(loss|loss_per_\w+|perplexity|padding_fraction|truncated|truncated_\w+)")


class Metric(Contract):
    """A value that can be merged with others of its kind.

    higher_is_better (Optional[bool]): Set by a subclass whose name does not tell its direction.
    summed (Tuple[str, ...]): Names of the attributes that ``+`` adds up (see ``merged``); a
        subclass without them has a ``+`` of its own.
    """

    returns = {"value": Returned("a number", is_kind(Real))}
    higher_is_better: Optional[bool] = None
    summed: Tuple[str, ...] = ()

    def value(self) -> float:
        """The value, rounded once."""
        raise NotImplementedError

    def __add__(self: MetricT, other: MetricT) -> MetricT:
        """The metric of both parts together; changes neither."""
        if not self.summed:
            raise NotImplementedError
        both = copy(self)
        for name in self.summed:
            setattr(both, name, merged(getattr(self, name), getattr(other, name)))
        return both

    def sums(self) -> Optional[Sums]:
        """The sums that the value is a function of: those of all examples together are
        those of each, added up. None: it is no such function, and has no interval."""
        return None

    def value_of(self, sums: Sums) -> numpy.ndarray:
        """The values that resamples of the examples would have.

        sums (Sums): Of each resample, shape (n_resamples,), float64.
        RETURNS (numpy.ndarray): Shape (n_resamples,).
        """
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value():.6g})"


class SumMetric(Metric):
    """A sum, for instance of examples.

    total (Union[int, float, ExactSum]): The sum so far.
    """

    summed = ("total",)

    def __init__(self, total: Number = 0):
        self.total = _exact(total)

    def value(self) -> float:
        """The sum."""
        return float(self.total)


class AverageMetric(Metric):
    """A quotient of two sums: 0.0 while the numerator is 0.

    numerator (Union[int, float, ExactSum]): Sum of the values.
    denominator (Union[int, float, ExactSum]): Number of values, or their weights.
    """

    summed = ("numerator", "denominator")

    def __init__(self, numerator: Number = 0, denominator: Number = 0):
        self.numerator = _exact(numerator)
        self.denominator = _exact(denominator)

    def value(self) -> float:
        """The quotient; NaN if only the denominator is 0."""
        if not self.numerator:
            return 0.0
        if not self.denominator:
            return math.nan
        return self.numerator / self.denominator

    def sums(self) -> Optional[Sums]:
        """Numerator and denominator."""
        return {"numerator": float(self.numerator), "denominator": float(self.denominator)}

    def value_of(self, sums: Sums) -> numpy.ndarray:
        """The quotients."""
        numerator, denominator = sums["numerator"], sums["denominator"]
        with numpy.errstate(divide="ignore", invalid="ignore"):
            return numpy.where(numerator == 0, 0.0, numerator / denominator)


class PerplexityMetric(AverageMetric):
    """exp(loss / tokens); lower is better.

    numerator (Union[int, float, ExactSum]): Summed loss in nats.
    denominator (Union[int, float, ExactSum]): Number of tokens.
    """

    higher_is_better = False

    def value(self) -> float:
        """The perplexity, 1.0 or more; infinite if it exceeds a double."""
        try:
            return math.exp(super().value())
        except OverflowError:
            return math.inf

    def value_of(self, sums: Sums) -> numpy.ndarray:
        """exp of the quotients."""
        with numpy.errstate(over="ignore"):
            return numpy.exp(super().value_of(sums))


def higher_is_better(name: str, metric: Optional[Metric] = None) -> Optional[bool]:
    """Whether a larger value of a metric is the better one.

    name (str): Name in a report, for instance "hits@1" or "dialogue/accuracy".
    metric (Optional[Metric]): The metric itself, if at hand: its own word counts first.
    RETURNS (Optional[bool]): None if neither the metric nor its name tells.
    """
    if metric is not None and metric.higher_is_better is not None:
        return metric.higher_is_better
    last = name.rpartition("/")[2]
    return True if HIGHER.fullmatch(last) else False if LOWER.fullmatch(last) else None


def is_share(name: str) -> bool:
    """Whether a metric is a share, 0.0 to 1.0, whose differences are shown in points of 100.

    name (str): Name in a report, for instance "hits@1" or "dialogue/accuracy".
    """
    return SHARE.fullmatch(name.rpartition("/")[2]) is not None


def merge_reports(*reports: Report) -> Dict[str, Metric]:
    """One report of all parts; a name missing from a report adds nothing there."""
    nothing: Dict[str, Metric] = {}
    return reduce(merged, map(dict, reports), nothing)


def report_values(report: Report) -> Dict[str, float]:
    """The values of a report, by name."""
    return {name: metric.value() for name, metric in report.items()}


def merged(one: Any, other: Any) -> Any:
    """Counts of two parts together; changes neither.

    one, other (Any): Numbers or exact sums; arrays, of which the values are collected; sets; or
        tuples, lists and dicts of these, place by place.
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
