import functools
import math
import operator
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


def total(values):
    return sum(map(ExactSum, values), ExactSum())


@given(st.lists(numbers), st.randoms())
def test_exact_sum_any_order_and_grouping_same_bits(values, random):
    shuffled = random.sample(values, len(values))
    cut = random.randrange(len(values) + 1)
    found, in_order = total(shuffled[cut:]) + total(shuffled[:cut]), ExactSum()
    for value in values:
        in_order.add(value)
    assert found.units == sum(Fraction(v) for v in values) * 2**1074
    assert found == in_order
    assert float(found).hex() == float(in_order).hex()


@given(st.lists(st.floats(min_value=-1e150, max_value=1e150)))
def test_exact_sum_rounds_once(values):
    assert float(total(values)) == math.fsum(values)


def test_exact_sum_takes_array_scalars():
    found = total([numpy.float32(0.1), numpy.int64(3)])
    assert float(found) == float(numpy.float32(0.1)) + 3


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
def test_exact_sum_specials_win(special):
    found = total([special, 1.0])
    assert repr(float(found)) == repr(special)
    assert found == found + ExactSum()


def test_exact_sum_overflow_is_infinite():
    assert float(total([1.7e308] * 2)) == math.inf
    assert float(total([1.7e308, 1.7e308, -1.7e308])) == 1.7e308


@pytest.mark.parametrize("kind", [SumMetric, AverageMetric, PerplexityMetric])
@given(
    st.lists(st.tuples(st.floats(min_value=-1e6, max_value=1e6), st.integers(1, 1000)), min_size=1),
    st.randoms(),
)
def test_metric_merge_order_independent(kind, pairs, random):
    pieces = [kind(*pair[: 1 if kind is SumMetric else 2]) for pair in pairs]
    in_order = functools.reduce(operator.add, pieces)
    while len(pieces) > 1:  # Merge two random pieces until one is left.
        left = pieces.pop(random.randrange(len(pieces)))
        right = pieces.pop(random.randrange(len(pieces)))
        pieces.append(left + right)
    assert pieces[0] == in_order
    assert pieces[0].value().hex() == in_order.value().hex()


def test_metric_values():
    assert SumMetric(3).value() == 3.0
    assert AverageMetric(0, 0).value() == 0.0
    assert math.isnan(AverageMetric(1, 0).value())
    assert PerplexityMetric(3 * math.log(7), 3).value() == pytest.approx(7.0)
    assert PerplexityMetric(1e6, 1).value() == math.inf
    assert AverageMetric(1, 3) != PerplexityMetric(1, 3)


def test_merge_reports_unites_names():
    one = {"examples": SumMetric(2), "accuracy": AverageMetric(1, 2)}
    two = {"examples": SumMetric(3), "loss": AverageMetric(1.5, 3), "accuracy": AverageMetric(3, 4)}
    merged = merge_reports(one, two)
    assert report_values(merged) == {"examples": 5.0, "accuracy": 4 / 6, "loss": 0.5}
    assert report_values(one) == {"examples": 2.0, "accuracy": 0.5}
    assert report_values(two) == {"examples": 3.0, "loss": 0.5, "accuracy": 0.75}


BETTER = """accuracy in_scope_accuracy token_accuracy precision recall f1 macro_f1 weighted_f1
hits@1 hits@100 mrr examples_per_second tokens_per_second dialogue/f1"""
WORSE = "loss loss_per_example perplexity padding_fraction truncated_contexts dialogue/loss"


def test_higher_is_better_by_name():
    assert all(higher_is_better(name) is True for name in BETTER.split())
    assert all(higher_is_better(name) is False for name in WORSE.split())
    assert all(higher_is_better(name) is None for name in ("examples", "learn_rate"))


def test_higher_is_better_asks_the_metric_first():
    class Distance(AverageMetric):
        higher_is_better = False

    assert higher_is_better("accuracy", Distance()) is False
    assert higher_is_better("accuracy", AverageMetric()) is True
    assert higher_is_better("tokens", PerplexityMetric()) is False
