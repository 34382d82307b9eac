"""Reports of several tasks: each task, their mean, and all examples together; merged exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.metrics import (
    AverageMetric,
    MacroMetric,
    SumMetric,
    higher_is_better,
    merge_reports,
    merge_tasks,
    report_values,
)

counts = st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40)


def reports(examples):
    """Make a report for each task."""
    found = {}
    for task in "abc":
        own = [right for name, right in examples if name == task]
        average = AverageMetric(sum(own), len(own))
        found[task] = {"examples": SumMetric(len(own)), "accuracy": average}
    return found


def test_merge_tasks_gives_each_task_macro_and_micro():
    examples = [("a", True)] * 3 + [("a", False)] + [("b", False)] * 6
    assert report_values(merge_tasks(reports(examples))) == {
        "examples": 10, "accuracy": 0.3,
        "a/examples": 4, "a/accuracy": 0.75,
        "b/examples": 6, "b/accuracy": 0.0,
        "c/examples": 0, "c/accuracy": 0.0,
        # c has no examples, so it has no scores.
        "macro/accuracy": 0.375,
    }  # fmt: skip


@given(counts, st.integers(0, 40))
def test_merge_tasks_of_parts_merge_to_the_whole(examples, cut):
    parts = [merge_tasks(reports(part)) for part in (examples[:cut], examples[cut:])]
    whole = merge_tasks(reports(examples))
    assert merge_reports(*parts) == whole == merge_reports(*reversed(parts))


def test_macro_metric_knows_its_direction():
    class Error(AverageMetric):
        higher_is_better = False

    assert MacroMetric({}).value() == 0.0
    assert higher_is_better("macro/ended", MacroMetric({"a": Error(1, 2)})) is False
    assert higher_is_better("macro/accuracy", MacroMetric({"a": AverageMetric(1, 2)})) is True
    assert repr(MacroMetric({"a": SumMetric(1), "b": SumMetric(2)})) == "MacroMetric(1.5)"
    assert MacroMetric({"a": SumMetric(1)}).value() == pytest.approx(1)
