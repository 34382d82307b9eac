"""Merged reports of several tasks: each task, their mean, and all tasks together."""

import math
from typing import Dict, Mapping

from .metric import Metric, Report, merge_reports

# The first part of the names of means over tasks.
MACRO = "macro"
# Counts, whose mean over tasks has no meaning.
COUNTS = ("examples",)


class MacroMetric(Metric):
    """Average the values of several parts, each with the same weight.

    parts (Mapping[str, Metric]): Part name to its metric; merged name by name.
    """

    def __init__(self, parts: Mapping[str, Metric]):
        self.parts = dict(parts)
        directions = {metric.higher_is_better for metric in self.parts.values()}
        if len(directions) == 1:
            (self.higher_is_better,) = directions

    def value(self) -> float:
        """Return the mean of the parts' values; 0.0 without parts."""
        return math.fsum(part.value() for part in self.parts.values()) / max(1, len(self.parts))

    def __add__(self, other: "MacroMetric") -> "MacroMetric":
        return type(self)(merge_reports(self.parts, other.parts))


def merge_tasks(reports: Mapping[str, Report]) -> Dict[str, Metric]:
    """Merge the reports of several tasks into one, which can itself be merged exactly.

    reports (Mapping[str, Report]): Task name to its report.
    RETURNS (Dict[str, Metric]): `<name>`, over all examples together (micro);
        `<task>/<name>`; and `macro/<name>`, the mean over the tasks that have examples. The report
        of a single task named "" is returned as it is.
    """
    if list(reports) == [""]:
        return dict(reports[""])
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
