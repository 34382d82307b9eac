import math
from fractions import Fraction

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.metrics import (
    AverageMetric,
    ExactSum,
    PerplexityMetric,
    SumMetric,
    higher_is_better,
    merge_reports,
    report_values,
)

numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(min_value=-(10**18), max_value=10**18),
)


@given(st.lists(numbers), st.randoms())
def test_exact_sum_any_order_and_grouping_same_bits(values, random):
    parts = [ExactSum() for _ in range(4)]
    for value in random.sample(values, len(values)):
        random.choice(parts).add(value)
    random.shuffle(parts)
    total = sum(parts, ExactSum())
    assert total.units == sum(Fraction(v) for v in values) * 2**1074
    in_order = ExactSum()
    for value in values:
        in_order.add(value)
    assert total == in_order
    assert float(total).hex() == float(in_order).hex()


@given(st.lists(st.floats(min_value=-1e150, max_value=1e150)))
def test_exact_sum_rounds_once(values):
    total = ExactSum()
    for value in values:
        total.add(value)
    assert float(total) == math.fsum(values)


def test_exact_sum_takes_array_scalars():
    total = ExactSum(numpy.float32(0.1))
    total.add(numpy.int64(3))
    assert float(total) == float(numpy.float32(0.1)) + 3


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
def test_exact_sum_specials_win(special):
    total = ExactSum(special)
    total.add(1.0)
    assert repr(float(total)) == repr(special)
    assert total == total + ExactSum()


def test_exact_sum_overflow_is_infinite():
    total = ExactSum(1.7e308)
    total.add(1.7e308)
    assert float(total) == math.inf
    total.add(-1.7e308)
    assert float(total) == 1.7e308


def metrics_of(kind, pairs):
    return [kind(a) if kind is SumMetric else kind(a, b) for a, b in pairs]


@pytest.mark.parametrize("kind", [SumMetric, AverageMetric, PerplexityMetric])
@given(
    st.lists(st.tuples(st.floats(min_value=-1e6, max_value=1e6), st.integers(1, 1000)), min_size=1),
    st.randoms(),
)
def test_metric_merge_order_independent(kind, pairs, random):
    in_order, *rest = metrics_of(kind, pairs)
    for metric in rest:
        in_order = in_order + metric
    pieces = metrics_of(kind, pairs)
    while len(pieces) > 1:  # merge two random pieces until one is left
        left = pieces.pop(random.randrange(len(pieces)))
        right = pieces.pop(random.randrange(len(pieces)))
        pieces.append(left + right)
    assert pieces[0] == in_order
    assert pieces[0].value().hex() == in_order.value().hex()


def test_metric_add_leaves_both_alone():
    left, right = AverageMetric(1, 2), AverageMetric(3, 4)
    assert (left + right).value() == pytest.approx(4 / 6)
    assert (left.value(), right.value()) == (0.5, 0.75)


def test_metric_values():
    assert SumMetric(3).value() == 3.0
    assert AverageMetric(0, 0).value() == 0.0
    assert math.isnan(AverageMetric(1, 0).value())
    assert PerplexityMetric(3 * math.log(7), 3).value() == pytest.approx(7.0)
    assert PerplexityMetric(1e6, 1).value() == math.inf
    assert AverageMetric(1, 3) != PerplexityMetric(1, 3)


def test_merge_reports_unites_names():
    one = {"examples": SumMetric(2), "accuracy": AverageMetric(1, 2)}
    two = {"examples": SumMetric(3), "loss": AverageMetric(1.5, 3)}
    merged = merge_reports(one, two)
    assert report_values(merged) == {"examples": 5.0, "accuracy": 0.5, "loss": 0.5}
    assert report_values(one) == {"examples": 2.0, "accuracy": 0.5}


@pytest.mark.parametrize(
    "name, expected",
    [
        ("accuracy", True),
        ("in_scope_accuracy", True),
        ("token_accuracy", True),
        ("precision", True),
        ("recall", True),
        ("f1", True),
        ("macro_f1", True),
        ("weighted_f1", True),
        ("hits@1", True),
        ("hits@100", True),
        ("mrr", True),
        ("examples_per_second", True),
        ("tokens_per_second", True),
        ("loss", False),
        ("loss_per_example", False),
        ("perplexity", False),
        ("padding_fraction", False),
        ("truncated_contexts", False),
        ("dialogue/f1", True),
        ("dialogue/loss", False),
        ("examples", None),
        ("learn_rate", None),
    ],
)
def test_higher_is_better_by_name(name, expected):
    assert higher_is_better(name) is expected


def test_higher_is_better_asks_the_metric_first():
    class Distance(AverageMetric):
        higher_is_better = False

    assert higher_is_better("accuracy", Distance()) is False
    assert higher_is_better("accuracy", AverageMetric()) is True
    assert higher_is_better("tokens", PerplexityMetric()) is False
