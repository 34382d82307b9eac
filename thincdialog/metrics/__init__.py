"""Metrics: exact, mergeable values, and one family of example metrics per file."""

from . import accuracy, class_f1, f1, ranking, token_scores
from .exact import ExactSum
from .example_metric import ExampleMetric
from .metric import (
    AverageMetric,
    Metric,
    PerplexityMetric,
    SumMetric,
    higher_is_better,
    merge_reports,
    report_values,
)

__all__ = [
    "AverageMetric",
    "ExactSum",
    "ExampleMetric",
    "Metric",
    "PerplexityMetric",
    "SumMetric",
    "higher_is_better",
    "merge_reports",
    "report_values",
]
