"""Metrics: values that merge exactly, and example metrics, one family per file."""

from ..registry import import_files
from .exact import ExactSum
from .example_metric import ExampleMetric
from .macro_metric import MacroMetric, merge_tasks
from .metric import (
    AverageMetric,
    Metric,
    PerplexityMetric,
    SumMetric,
    higher_is_better,
    is_share,
    merge_reports,
    report_values,
)

import_files(__name__, __path__)
