"""Compute the intervals of scores."""

from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

import numpy

from ..metrics import ExampleMetric, Metric
from .bootstrap import Resampled, interval, resample, sums_of, task_values
from .predictions import Prediction, report_of

Intervals = Dict[str, Tuple[float, float]]


class Drawn(NamedTuple):
    """Hold the intervals of scores, from resamples.

    intervals (Intervals): See ``Evaluation``.
    what (str): Unit of the resamples: "examples" or "conversations".
    n_drawn (int): Number of these units.
    """

    intervals: Intervals
    what: str
    n_drawn: int


def find_intervals(
    rows: Mapping[str, List[Prediction]],
    metrics: Sequence[ExampleMetric],
    reports: Mapping[str, Mapping[str, Metric]],
    scores: Mapping[str, float],
    n_resamples: int,
) -> Drawn:
    """Compute the intervals of the scores of an evaluation.

    rows (Mapping[str, List[Prediction]]): Replies of each task, in the order of its data.
    metrics (Sequence[ExampleMetric]): The metrics that replies are scored by.
    reports (Mapping[str, Mapping[str, Metric]]): Metrics of each task.
    scores (Mapping[str, float]): The scores that were computed from the reports.
    n_resamples (int): Number of resamples; 0 for no intervals.
    """
    resampled: Dict[str, Dict[str, Resampled]] = {}
    for number, (task, own) in enumerate(rows.items()):
        if n_resamples and any(row.labels for row in own):
            totals = {
                name: metric
                for name, metric in reports[task].items()
                if scores.get(f"{task}/{name}" if task else name) == metric.value()
            }
            units = [row.conversation for row in own]
            sums = (sums_of(report_of([row], metrics)) for row in own)
            resampled[task] = resample(sums, units, totals, n_resamples, number)
    values = task_values(resampled, list(resampled))
    drawn = [{row.conversation for row in own} for own in rows.values()]
    n_drawn, n_rows = sum(map(len, drawn)), sum(map(len, rows.values()))
    found = {
        name: interval(values[name])
        for name in scores
        # If all examples have the same value, resamples carry no information.
        if name in values and numpy.ptp(values[name]) > 0
    }
    return Drawn(found, "examples" if n_drawn == n_rows else "conversations", n_drawn)
