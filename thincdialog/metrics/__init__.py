"""Metrics: exact, mergeable values, and one family of example metrics per file."""

from . import (
    accuracy,
    auc,
    bleu,
    class_f1,
    distinct_n,
    f1,
    intra_distinct_n,
    label_sets,
    ranking,
    rouge_l,
    token_scores,
)
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
