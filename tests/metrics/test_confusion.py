"""Counts of predicted classes for each true class."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.errors import DataError
from thincdialog.messages import Message
from thincdialog.metrics.confusion import ConfusionMatrix, confusion_matrix

classes = st.sampled_from("abcd")
pairs = st.lists(st.tuples(classes, st.one_of(classes, st.none())), min_size=1)


def matrix_of(rows):
    matrix = ConfusionMatrix()
    for label, found in rows:
        matrix.add([label], Message() if found is None else Message(text=found))
    return matrix


@given(pairs, st.randoms())
def test_confusion_counts_each_example_in_any_order(rows, random):
    whole = matrix_of(rows)
    assert matrix_of(random.sample(rows, len(rows))).counts == whole.counts
    replies, counts = whole.table()
    assert counts.sum() == len(rows) and counts.shape == (len(whole.classes), len(replies))
    for label, row in zip(whole.classes, counts.tolist()):
        for found, n in zip(replies, row):
            assert n == rows.count((label, found))
    wrong = sum(n for _, _, n in whole.most_confused(100))
    assert wrong == sum(label != found for label, found in rows)


def test_confusion_by_class_equals_scikit_learn():
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    rows = [("abcabd"[i * 7 % 6], "abcabde"[i * 5 % 7]) for i in range(60)]
    matrix = matrix_of(rows)
    labels, found = zip(*rows)
    expected = sklearn_metrics.precision_recall_fscore_support(labels, found, zero_division=0)
    for place, scores in enumerate(matrix.by_class().values()):
        assert scores == pytest.approx([column[place] for column in expected])
    expected = sklearn_metrics.confusion_matrix(labels, found)
    assert (matrix.table()[1] == expected).all()


def test_confusion_lists_the_worst_pairs_first():
    rows = [("a", "b")] * 2 + [("b", "a")] * 3 + [("b", None)] * 2 + [("a", "a")] * 9
    assert matrix_of(rows).most_confused(2) == [("b", "a", 3), ("a", "b", 2)]


def test_confusion_sums_the_classes_that_are_rarely_confused():
    rows = [("a", "b")] * 3 + [("c", "d")] * 2 + [("c", "c"), ("e", "a"), ("f", "f"), ("f", None)]
    summed = matrix_of(rows).summed(3, "others")
    assert summed.counts == {
        ("a", "b"): 3, ("c", "others"): 2, ("c", "c"): 1, ("others", "a"): 1,
        ("others", "others"): 1, ("others", None): 1,
    }  # fmt: skip
    assert matrix_of(rows).summed(6, "others").counts == matrix_of(rows).counts


@given(pairs, st.integers(0, 5))
def test_confusion_sums_lose_no_example(rows, n):
    summed = matrix_of(rows).summed(n, "others")
    assert sum(summed.counts.values()) == len(rows)
    assert len(set(summed.classes) - {"others"}) == min(n, len(matrix_of(rows).classes))
    right = sum(count for (label, found), count in summed.counts.items() if label == found)
    assert right >= sum(label == found for label, found in rows)


def test_confusion_is_for_classes():
    replies = [([f"reply {n}"], Message(text="hi")) for n in range(20)]
    with pytest.raises(DataError, match="no classes to count: 20 different labels in 20 examples"):
        confusion_matrix(replies, "the dev data")
    few = [([f"{n % 2}"], Message(text="1")) for n in range(20)]
    assert confusion_matrix(few, "the dev data").classes == ["0", "1"]
    classified = [([f"{n}"], Message(text="1", classes=["0", "1"])) for n in range(2)]
    assert confusion_matrix(classified, "the dev data").by_class()["1"].support == 1
    with pytest.raises(DataError, match="0 different labels in 0 examples"):
        confusion_matrix([([], Message(text="1"))], "the dev data")
