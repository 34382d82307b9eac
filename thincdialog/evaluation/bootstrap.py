"""The bootstrap, which estimates how much scores would vary on other examples of the same kind.

A resample is drawn from the examples with replacement, and has the same number of examples. If
conversations have several turns, whole conversations are drawn, because the turns of a
conversation are not independent. A metric that is a function of sums (``Metric.sums``) is then
computed for all resamples at once. Source: Efron and Tibshirani 1993, chapter 13 (percentile
intervals).
"""

from array import array
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import (
    Callable,
    Dict,
    Hashable,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

import numpy

from ..metrics import Metric
from ..metrics.macro_metric import COUNTS, MACRO
from ..metrics.metric import Report, Sums, merged
from .predictions import Prediction

N_RESAMPLES = 1000
# Largest number of elements in memory: of the weights of one block of resamples, and of the sums
# of one metric.
BLOCK_CELLS = 1 << 22
MOST_CELLS = 30_000_000
TAILS = (0.025, 0.975)

Values = Dict[str, numpy.ndarray]
# Metric name to sums; None if the metric has none (see ``Metric.sums``).
AllSums = Mapping[str, Optional[Sums]]


@dataclass
class Resampled:
    """Hold the sums of one metric in many resamples.

    metric (Metric): The metric of all examples.
    sums (Dict[Hashable, numpy.ndarray]): Each sum of the metric in every resample, shape
        (n_resamples,).
    """

    metric: Metric
    sums: Dict[Hashable, numpy.ndarray]

    def values(self) -> Optional[numpy.ndarray]:
        """Return the value of the metric in each resample; None if the metric is not a function of
        its sums, or not finite."""
        total = self.metric.sums()
        if total is None:
            return None
        known = {name: numpy.array([float(value)]) for name, value in total.items()}
        expected = self.metric.value()
        if not known or not numpy.allclose(self.metric.value_of(known), expected, rtol=1e-6):
            return None  # The metric is of a subclass with another formula.
        values = self.metric.value_of(self.sums)
        return values if numpy.isfinite(values).all() else None


def sums_of(report: Report) -> AllSums:
    """Return the sums of each metric in a report; None for a metric without sums."""
    return {name: metric.sums() for name, metric in report.items()}


def resample(
    examples: Iterable[AllSums],
    units: Sequence[Hashable],
    totals: Mapping[str, Metric],
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Dict[str, Resampled]:
    """Compute the metrics of one task in many resamples.

    examples (Iterable[AllSums]): The sums (see ``sums_of``) of each example alone.
    units (Sequence[Hashable]): The unit of each example; examples of one unit are drawn together.
    totals (Mapping[str, Metric]): The metrics of all examples together.
    n_resamples (int): Number of resamples.
    seed (int): Seed of the draws. The same seed and number of units give the same draws, so that
        two models can be compared.
    RETURNS (Dict[str, Resampled]): Name to metric, for metrics that are functions of sums; empty
        if there are fewer than 2 units.
    """
    numbers: Dict[Hashable, int] = {}
    of_row = [numbers.setdefault(unit, len(numbers)) for unit in units]
    if len(numbers) < 2:
        return {}
    # Metric to sum to the value in each unit, shape (n_units,), float64.
    of_units: Dict[str, Dict[Hashable, "array[float]"]]
    of_units = {name: {} for name, metric in totals.items() if metric.sums()}
    for unit, known in zip(of_row, examples):
        for name, own in list(of_units.items()):
            sums = known.get(name, {})
            for key, value in (sums or {}).items():
                if key not in own:
                    own[key] = array("d", bytes(8 * len(numbers)))
                own[key][unit] += value
            if sums is None or len(numbers) * len(own) > MOST_CELLS:
                del of_units[name]
    # Metrics without sums, such as those that the agent measures itself, have no resamples.
    of_units = {name: own for name, own in of_units.items() if own}
    tables = {name: numpy.stack([*own.values()], axis=1) for name, own in of_units.items()}
    parts: Dict[str, List[numpy.ndarray]] = {name: [] for name in tables}
    for weights in _draws(len(numbers), n_resamples, seed):
        for name, table in tables.items():
            parts[name].append(_products(weights, table))
    return {
        name: Resampled(totals[name], dict(zip(own, numpy.concatenate(parts[name]).T)))
        for name, own in of_units.items()
    }


def _draws(n_units: int, n_resamples: int, seed: int) -> Iterator[numpy.ndarray]:
    """Yield how often each unit is drawn, block by block, shape (n_in_block, n_units)."""
    random = numpy.random.default_rng([seed, n_units])
    size = max(1, BLOCK_CELLS // n_units)
    for start in range(0, n_resamples, size):
        weights = numpy.empty((min(size, n_resamples - start), n_units))
        for row in weights:
            row[:] = numpy.bincount(random.integers(0, n_units, n_units), minlength=n_units)
        yield weights


def _products(weights: numpy.ndarray, table: numpy.ndarray) -> numpy.ndarray:
    """Return weights @ table, bit for bit identical with any number of threads. Sums of whole
    numbers are exact in any order, and other numbers are added in a fixed order."""
    products = numpy.empty((len(weights), table.shape[1]))
    whole = (table == numpy.rint(table)).all(axis=0)
    products[:, whole] = weights @ table[:, whole]
    if not whole.all():
        products[:, ~whole] = numpy.einsum("rn,nk->rk", weights, table[:, ~whole], optimize=False)
    return products


def task_values(by_task: Mapping[str, Mapping[str, Resampled]]) -> Values:
    """Compute the values of all metrics in the resamples, by the names of ``merge_tasks``.

    by_task (Mapping[str, Mapping[str, Resampled]]): Name of each task with examples to the
        resampled metrics; {"": ...} if there is only one task.
    """
    of_tasks: Dict[str, Values] = {
        task: {name: drawn for name, one in found.items() if (drawn := one.values()) is not None}
        for task, found in by_task.items()
    }
    if list(by_task) == [""]:
        return of_tasks[""]
    values: Values = {}
    for name in dict.fromkeys(name for resampled in by_task.values() for name in resampled):
        own = [resampled[name] for resampled in by_task.values() if name in resampled]
        if len(own) == len(by_task):
            metric = reduce(add, (one.metric for one in own))
            micro = Resampled(metric, reduce(merged, (one.sums for one in own))).values()
            if micro is not None:
                values[name] = micro
            parts = [found[name] for found in of_tasks.values() if name in found]
            if len(parts) == len(by_task) and name not in COUNTS:
                values[f"{MACRO}/{name}"] = numpy.mean(parts, axis=0)
    for task, found in of_tasks.items():
        values.update({f"{task}/{name}": value for name, value in found.items()})
    return values


def interval(values: numpy.ndarray) -> Tuple[float, float]:
    """Return the ends of the middle 95 % of the values of resamples."""
    low, high = numpy.quantile(values, TAILS)
    return float(low), float(high)


@dataclass
class Drawn:
    """Hold the scores of an evaluation in many resamples.

    values (Dict[str, numpy.ndarray]): Score of all examples or of a task (see ``merge_tasks``) to
        its value in each resample, shape (n_resamples,).
    what (str): Unit of the resamples: "examples" or "conversations".
    n_drawn (int): Number of these units.
    """

    values: Values
    what: str
    n_drawn: int


def draw(
    rows: Mapping[str, Sequence[Prediction]],
    report: Callable[[Sequence[Prediction]], Report],
    totals: Mapping[str, Report],
    n_resamples: int,
) -> Drawn:
    """Compute the scores of an evaluation in many resamples. The same examples and conversations
    are drawn the same way, so that two models can be compared.

    rows (Mapping[str, Sequence[Prediction]]): Replies of each task, in the order of its data.
    report (Callable): Returns the metrics of some replies.
    totals (Mapping[str, Report]): The metrics of each task to resample.
    n_resamples (int): Number of resamples; 0 for none.
    """
    resampled: Dict[str, Dict[str, Resampled]] = {}
    units = {task: [row.conversation for row in own] for task, own in rows.items()}
    for number, (task, own) in enumerate(rows.items()):
        if n_resamples and report(own):
            sums = (sums_of(report([row])) for row in own)
            resampled[task] = resample(sums, units[task], totals[task], n_resamples, number)
    n_drawn, n_rows = sum(len({*own}) for own in units.values()), sum(map(len, rows.values()))
    what = "examples" if n_drawn == n_rows else "conversations"
    return Drawn(task_values(resampled), what, n_drawn)
