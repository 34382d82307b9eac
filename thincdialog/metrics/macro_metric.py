"""Reports of several tasks as one: each by itself, their mean, and all together."""

import math
from typing import Dict, Mapping

from .metric import Metric, Report, merge_reports

# Begins the names of the means over tasks.
MACRO = "macro"
# Counts, of which a mean over tasks says nothing.
COUNTS = ("examples",)


class MacroMetric(Metric):
    """The mean of what several parts are worth, however many examples each has.

    parts (Mapping[str, Metric]): Part name to its metric; merged name by name.
    """

    def __init__(self, parts: Mapping[str, Metric]):
        self.parts = dict(parts)
        directions = {metric.higher_is_better for metric in self.parts.values()}
        if len(directions) == 1:
            (self.higher_is_better,) = directions

    def value(self) -> float:
        """The mean of the parts' values; 0.0 while there are none."""
        if not self.parts:
            return 0.0
        return math.fsum(part.value() for part in self.parts.values()) / len(self.parts)

    def __add__(self, other: "MacroMetric") -> "MacroMetric":
        return type(self)(merge_reports(self.parts, other.parts))


def merge_tasks(reports: Mapping[str, Report]) -> Dict[str, Metric]:
    """One report of several tasks. It can be merged with others of its kind exactly.

    reports (Mapping[str, Report]): Task name to its report.
    RETURNS (Dict[str, Metric]): `<name>`, of all examples together (micro);
        `<task>/<name>`; and `macro/<name>`, the mean over the tasks that have examples.
    """
    merged = merge_reports(*reports.values())
    parts: Dict[str, Dict[str, Metric]] = {name: {} for name in merged if name not in COUNTS}
    by_task: Dict[str, Metric] = {}
    for task, report in reports.items():
        is_empty = "examples" in report and not report["examples"].value()
        for name, metric in report.items():
            by_task[f"{task}/{name}"] = metric
            if name in parts and not is_empty:
                parts[name][task] = metric
    macro = {f"{MACRO}/{name}": MacroMetric(metrics) for name, metrics in parts.items()}
    return {**merged, **by_task, **macro}
