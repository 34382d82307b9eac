"""Thresholds and their effects, compared with counts by hand."""

import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.api import Agent
from thincdialog.cli.evaluate import show_coverage
from thincdialog.evaluation.coverage import (
    Guesses,
    auroc,
    coverage,
    lowest_threshold,
    share,
    shares_at,
)
from thincdialog.evaluation.predictions import Prediction
from thincdialog.messages import Message

# Confidence, whether the guess is right, whether the label is in scope. There are only a few
# confidences, so that many are equal.
ROWS = st.lists(
    st.tuples(st.integers(-8, 8).map(lambda n: n / 8), st.booleans(), st.booleans()).map(
        lambda row: (row[0], row[1] and row[2] and row[0] >= 0, row[2])
    ),
    min_size=1,
    max_size=20,
)
SHARES = st.sampled_from([0.0, 0.25, 0.5, 0.6, 0.75, 0.9, 1.0])
# Every split of such rows by a threshold is that of one of these.
THRESHOLDS = [n / 16 for n in range(18)]


def guesses_of(rows):
    return Guesses(*map(np.array, zip(*rows)))


def count_by_hand(rows, threshold):
    """Count the texts that get a class, and the texts that get the right one."""
    answered = [row for row in rows if row[0] >= threshold]
    return len(answered), sum(1 for row in answered if row[1])


def test_guesses_contain_whether_a_guess_is_right_and_in_scope():
    def row(label, best, text="hi"):
        classes = ["a", "b", "oos"]
        reply = {"text_candidates": [best], "candidate_probabilities": [0.5], "classes": classes}
        return Prediction("0", [label], Message(reply), text)

    pairs = [("a", "a"), ("a", "b"), ("oos", "a"), ("oos", "oos"), ("a", "oos"), ("new", "a")]
    agent = Agent()
    agent.reject_class = "oos"
    found = Guesses.of([*(row(*pair) for pair in pairs), row("a", "a", " ")], agent)
    assert found.confidence.tolist() == [0.5, 0.5, 0.5, -0.5, -0.5, 0.5, 0.0]
    assert found.is_right.tolist() == [True, False, False, False, False, False, True]
    assert found.is_inside.tolist() == [True, True, False, False, True, False, True]


@given(ROWS, SHARES)
def test_threshold_for_precision_answers_as_many_texts_as_possible(rows, precision):
    found = lowest_threshold(guesses_of(rows), "precision", precision)
    counts = [count_by_hand(rows, threshold) for threshold in THRESHOLDS]
    most = max((n for n, right in counts if n and right / n >= precision), default=None)
    assert (found is None) == (most is None)
    if found is not None:
        n, right = count_by_hand(rows, found)
        assert n == most and right / n >= precision


@given(ROWS, SHARES)
def test_threshold_for_recall_is_the_lowest_that_rejects_enough(rows, recall):
    found = lowest_threshold(guesses_of(rows), "recall", recall)
    outside = [confidence for confidence, _, is_inside in rows if not is_inside]
    assert (found is None) == (not outside)
    if found is not None:

        def is_enough(threshold):
            return sum(1 for each in outside if each < threshold) / len(outside) >= recall

        lowest = min(each for each in THRESHOLDS if is_enough(each))
        assert is_enough(found) and count_by_hand(rows, found) == count_by_hand(rows, lowest)


@given(ROWS, st.sampled_from(THRESHOLDS))
def test_shares_at_a_threshold_are_those_counted_by_hand(rows, threshold):
    n, right = count_by_hand(rows, threshold)
    rejected = [row for row in rows if row[0] < threshold]
    n_out = sum(1 for row in rows if not row[2])
    n_found = sum(1 for row in rejected if not row[2])
    expected = [(n, len(rows)), (right, n)]
    expected += [(right, len(rows) - n_out), (n_found, n_out), (n_found, len(rejected))]
    found = shares_at(guesses_of(rows), threshold).values()
    for (value, *ends), (part, whole) in zip(found, expected, strict=True):
        assert value == part / whole if whole else math.isnan(value)
        assert ends == [*share(part, whole)[1:]]


def test_coverage_has_a_row_for_each_precision():
    # Sorted by confidence: 19 right, 1 wrong, 10 right, 10 wrong.
    is_right = [True] * 19 + [False] + [True] * 10 + [False] * 10
    rows = [(1 - n / 100, right, True) for n, right in enumerate(is_right)]
    found = coverage(guesses_of(rows), 0.805)
    assert list(found) == ["90%", "95%", "98%", "99%", "model"]
    assert [round(row["answered"][0] * 40) for row in found.values()] == [32, 30, 19, 19, 20]
    assert found["95%"]["threshold"] == pytest.approx((0.71 + 0.70) / 2)
    found = coverage(guesses_of([(0.5, False, True)]), 0.0)
    assert [name for name, row in found.items() if row is not None] == ["model"]
    assert list(found) == ["90%", "95%", "98%", "99%", "model"]


def test_coverage_of_texts_out_of_scope_alone_shows_their_recall():
    stream = io.StringIO()
    show_coverage(coverage(guesses_of([(0.5, False, False), (0.7, False, False)]), 0.6), stream)
    text = stream.getvalue()
    assert text.count("not reached") == 4
    assert "out-of-scope recall     0.5000" in text and "AUROC" not in text and "nan" not in text
    show_coverage(coverage(guesses_of([(0.5, True, True)]), 0.6), stream)
    assert "nan" not in stream.getvalue()


@pytest.mark.parametrize(
    "n, n_all, low, high",
    # Expected values are from proportion_confint(method="wilson") of statsmodels.
    [(8, 10, 0.490162, 0.943318), (0, 10, 0.0, 0.277533), (10, 10, 0.722467, 1.0)],
)
def test_share_has_the_interval_of_wilson(n, n_all, low, high):
    assert share(n, n_all) == pytest.approx((n / n_all, low, high), abs=1e-6)


@given(ROWS)
def test_auroc_is_the_share_of_pairs_in_order(rows):
    inside, outside = ([row[0] for row in rows if row[2] is side] for side in (True, False))
    pairs = [(a > b) + (a == b) / 2 for a in inside for b in outside]
    found = auroc(guesses_of(rows))
    assert found == pytest.approx(sum(pairs) / len(pairs)) if pairs else math.isnan(found)
