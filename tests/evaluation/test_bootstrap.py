"""Bootstrap intervals: the right examples are drawn, and values from sums agree with metrics."""

from importlib.util import find_spec

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.api import registry
from thincdialog.evaluation.bootstrap import interval, resample, sums_of, task_values
from thincdialog.messages import Message
from thincdialog.metrics import AverageMetric, SumMetric, merge_reports, merge_tasks

CLASSES = "abcd"


def reports_of(families, rows):
    found = []
    for labels, reply in rows:
        report = {}
        for family in families:
            alone = family.fresh()
            alone.add(labels, Message(reply))
            report.update(alone.report())
        found.append(report)
    return found


def average_reports(values):
    return [{"accuracy": AverageMetric(value, 1)} for value in values]


def values_of(reports, units, n_resamples=200, seed=0):
    totals = merge_reports(*reports)
    found = resample(map(sums_of, reports), units, totals, n_resamples, seed)
    return task_values({"": found})


rows = st.lists(
    st.tuples(st.sampled_from(CLASSES), st.sampled_from([*CLASSES, None])), min_size=2, max_size=30
)


def all_families():
    names = ["Accuracy", "F1", "Ranking", "ClassF1", "RougeL"]
    names += ["BLEU"] if find_spec("sacrebleu") else []
    return [registry.metrics.get(f"thincdialog.{name}.v1")() for name in names]


@given(rows, st.integers(1, 4))
def test_bootstrap_values_are_those_of_the_metric_on_the_drawn_examples(pairs, n_units):
    """The expected values are computed slowly: the reports of a unit are merged as often as the
    unit was drawn."""
    families = all_families()
    reports = reports_of(families, [([label], {"text": found}) for label, found in pairs])
    units = [number % n_units for number in range(len(pairs))]
    found = values_of(reports, units, n_resamples=5)
    n = len(set(units))
    if n < 2:
        assert found == {}
        return
    random = numpy.random.default_rng([0, n])
    for place in range(5):
        drawn = numpy.bincount(random.integers(0, n, n), minlength=n)
        repeated = [report for report, unit in zip(reports, units) for _ in range(drawn[unit])]
        expected = merge_reports(*repeated)
        for name, values in found.items():
            assert values[place] == pytest.approx(expected[name].value(), abs=1e-12), name
    assert {"accuracy", "f1", "hits@1", "macro_f1", "weighted_f1", "rouge_l"} <= set(found)


@pytest.mark.slow
def test_bootstrap_interval_has_its_stated_coverage():
    """About 95 % of the intervals of 200 samples of 150 examples contain the true accuracy, 0.7."""
    random = numpy.random.default_rng(0)
    covered = 0
    for _ in range(200):
        reports = average_reports(random.random(150) < 0.7)
        low, high = interval(values_of(reports, range(150), 400)["accuracy"])
        covered += low <= 0.7 <= high
    assert 180 <= covered <= 199


@pytest.mark.slow
def test_bootstrap_of_conversations_has_better_coverage_than_of_turns():
    """The five turns of a conversation are all right or all wrong, so they say no more than one
    turn does."""
    random = numpy.random.default_rng(1)
    covered = {"turns": 0, "conversations": 0}
    for _ in range(100):
        right = numpy.repeat(random.random(60) < 0.7, 5)
        units = {"turns": numpy.arange(300), "conversations": numpy.repeat(numpy.arange(60), 5)}
        for name, of_row in units.items():
            values = values_of(average_reports(right), of_row.tolist(), 300)["accuracy"]
            low, high = interval(values)
            covered[name] += low <= 0.7 <= high
    assert covered["conversations"] >= 88 and covered["turns"] <= 75


def test_bootstrap_draws_the_same_for_the_same_seed():
    reports = average_reports([1, 0, 0.25, 1, 0.5])
    one, two, other = (values_of(reports, range(5), seed=seed)["accuracy"] for seed in (3, 3, 4))
    assert one.tobytes() == two.tobytes() != other.tobytes()


def test_bootstrap_does_not_depend_on_the_order_in_which_workers_are_joined():
    drawn = numpy.random.default_rng(0).integers(7, size=(60, 2))
    families = [registry.metrics.get("thincdialog.ClassF1.v1")()]
    reports = reports_of(
        families, [((f"c{label}",), {"text": f"c{reply}"}) for label, reply in drawn]
    )
    units, parts = range(len(reports)), (reports, reports[::-1])
    one, two = (resample(map(sums_of, reports), units, merge_reports(*part), 200) for part in parts)
    assert "macro_f1" in one
    for name in one:
        assert (one[name].values() == two[name].values()).all()


def test_bootstrap_draws_each_task_separately():
    tasks = {"a": average_reports([1, 0, 1, 1]), "b": average_reports([0, 0, 1] * 10), "c": []}
    resampled = {
        task: resample(
            map(sums_of, reports), range(len(reports)), merge_reports(*reports), 50, number
        )
        for number, (task, reports) in enumerate(tasks.items())
        if reports
    }
    values = task_values(resampled)
    names = merge_tasks({task: merge_reports(*rows) for task, rows in tasks.items() if rows})
    assert set(values) == set(names)
    a, b = values["a/accuracy"], values["b/accuracy"]
    assert values["macro/accuracy"] == pytest.approx((a + b) / 2)
    assert values["accuracy"] == pytest.approx((4 * a + 30 * b) / 34)


def test_bootstrap_gives_no_value_where_it_cannot():
    class Rooted(AverageMetric):
        def value(self):
            return super().value() ** 0.5

    reports = [
        {"rooted": Rooted(n, 1), "unseen": AverageMetric(), "examples": SumMetric(1)}
        for n in (1, 4, 9)
    ]
    assert set(values_of(reports, range(3))) == {"unseen"}
    assert values_of(average_reports([1]), range(1)) == {}
    assert values_of(average_reports([1, 0, 1]), [7, 7, 7]) == {}
    # Some resamples contain none of the few examples that count, and have no value.
    few = [{"rare": AverageMetric(n, n)} for n in (1, 0, 0, 0)]
    assert set(values_of(few, range(4))) == {"rare"}
