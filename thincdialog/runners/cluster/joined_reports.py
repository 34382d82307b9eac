"""Joins the reports of a step's microbatches."""

import math
from typing import Dict, Sequence

from ...protocol import StepReport


def joined_reports(reports: Sequence[StepReport]) -> StepReport:
    """Join reports into one, which does not depend on which worker made which of them.

    reports (Sequence[StepReport]): In the order of the microbatches.
    """
    # A plain loop, because it is fast, and this is called for each step of all workers.
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
