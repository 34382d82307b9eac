"""Scores of sets of labels, compared with plain loops."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.evaluation.predictions import Prediction, is_mean_of_examples, report_of
from thincdialog.messages import Message
from thincdialog.metrics import is_share, merge_reports
from thincdialog.metrics.label_sets import LabelSets

sets = st.lists(st.sampled_from("abcd"), unique=True, max_size=3)
examples = st.lists(st.tuples(sets, sets), max_size=12)


def reported(rows):
    metric = LabelSets()
    metric.add_batch([labels for labels, _ in rows], [reply(found) for _, found in rows])
    return metric.report()


def reply(found):
    return Message(text=", ".join(found), predicted_labels=found)


def ratio(part, whole):
    return part / whole if whole else 0.0


def by_loops(rows):
    """Compute the seven scores from their definitions."""
    scores = {}
    right = sum(label in labels for labels, found in rows for label in found)
    n_found, n_labels = (sum(len(row[side]) for row in rows) for side in (1, 0))
    scores["micro_precision"], scores["micro_recall"] = (
        ratio(right, n_found),
        ratio(right, n_labels),
    )
    scores["micro_f1"] = ratio(2 * right, n_found + n_labels)
    of_label = {"f1": [], "precision": [], "recall": []}
    for name in "abcd":
        hits = sum(name in labels and name in found for labels, found in rows)
        found = sum(name in found for _, found in rows)
        labels = sum(name in labels for labels, _ in rows)
        if found + labels:
            of_label["precision"].append(ratio(hits, found))
            of_label["recall"].append(ratio(hits, labels))
            of_label["f1"].append(ratio(2 * hits, found + labels))
    for name, values in of_label.items():
        scores[f"macro_{name}"] = ratio(sum(values), len(values))
    n_exact = sum(set(labels) == set(found) for labels, found in rows)
    scores["exact_match"] = ratio(n_exact, len(rows))
    return scores


@given(examples)
def test_label_sets_are_those_of_plain_loops(rows):
    expected = by_loops(rows)
    report = reported(rows)
    assert {name: pytest.approx(metric.value()) for name, metric in report.items()} == expected
    assert all(map(is_share, report))


@given(examples, st.integers(0, 12))
def test_label_sets_of_parts_merge_to_those_of_the_whole(rows, cut):
    assert merge_reports(reported(rows[:cut]), reported(rows[cut:])) == reported(rows)


@given(examples.filter(bool))
def test_label_sets_of_a_resample_are_those_of_its_examples(rows):
    for name, metric in reported(rows).items():
        parts = [reported([row])[name].sums() for row in rows]
        keys = {key for sums in parts for key in sums}
        total = {key: numpy.array([sum(sums.get(key, 0.0) for sums in parts)]) for key in keys}
        assert numpy.ravel(metric.value_of(total))[0] == pytest.approx(metric.value())


def test_label_sets_read_the_text_of_a_reply_without_predicted_labels():
    metric = LabelSets()
    metric.add(["a", "b"], Message(text="a"))
    metric.add([], Message())
    values = {name: each.value() for name, each in metric.report().items()}
    assert (values["micro_precision"], values["micro_recall"]) == (1.0, 0.5)
    assert values["exact_match"] == 0.5


def test_label_sets_of_one_example_are_no_means_but_for_the_exact_match():
    row = Prediction("0", ["a"], reply(["a"]))
    report = report_of([row], [LabelSets()])
    assert [name for name, each in report.items() if is_mean_of_examples(each)] == ["exact_match"]
