"""Merge the reports of a step's microbatches."""

import math
from typing import Dict, Sequence

from ...protocol import StepReport


def joined_reports(reports: Sequence[StepReport]) -> StepReport:
    """Merge the reports of microbatches. The result does not depend on which worker trained on
    which microbatch.

    reports (Sequence[StepReport]): Reports in the order of the microbatches.
    """
    # A plain loop is fast, which matters because this is called for each step.
    counts: Dict[str, int] = {}
    for report in reports:
        for name, n in report.counts.items():
            counts[name] = counts.get(name, 0) + n
    losses = [report.loss for report in reports if report.loss is not None]
    return StepReport(
        sum(report.examples for report in reports),
        math.fsum(losses) if losses else None,
        sum(report.weight for report in reports),
        next((report.unit for report in reports), "examples"),
        counts=counts,
    )
