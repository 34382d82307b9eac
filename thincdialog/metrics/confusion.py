"""Confusion matrix: exact counts of predicted classes by true class, and scores per class."""

from collections import Counter
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from ..errors import DataError
from ..messages import Message
from .class_f1 import class_of

# Labels are taken to be classes if each is the label of at least this many examples on average.
USUAL = 10


class ClassScores(NamedTuple):
    """Hold the scores of one class.

    precision (float): Fraction of the examples for which the class was replied that belong to it.
    recall (float): Fraction of the class's examples for which it was replied.
    f1 (float): Harmonic mean of precision and recall.
    support (int): Number of examples of the class.
    """

    precision: float
    recall: float
    f1: float
    support: int


class ConfusionMatrix:
    """Count pairs of (class of the example, class replied).

    counts (Counter): Number of examples for each pair; None is a reply without text. For
        sets of labels, each label is a pair of its own: None instead of the class is a label too
        many, and None instead of the reply is a missed label.
    """

    def __init__(self) -> None:
        self.counts: Counter = Counter()

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one example. Its class is the label that was replied, else the first label."""
        found = reply.get("text")
        if "predicted_labels" in reply:
            predicted = reply["predicted_labels"]
            self.counts.update(
                (name if name in labels else None, name if name in predicted else None)
                for name in {*labels, *predicted}
            )
        else:
            self.counts[class_of(labels, found), found] += 1

    @property
    def classes(self) -> List[str]:
        """All labels and replies, sorted."""
        names = {name for pair in self.counts for name in pair}
        return sorted(name for name in names if name is not None)

    def table(self) -> Tuple[List[Optional[str]], numpy.ndarray]:
        """Return the replies, and the counts with a row for each class and a column for each reply.

        RETURNS (Tuple): ``classes``, and None last if some replies had no text; the counts,
            shape (n_classes, n_replies), int64.
        """
        classes = self.classes
        replies: List[Optional[str]] = list(classes)
        if any(found is None for _, found in self.counts):
            replies.append(None)
        row = {name: place for place, name in enumerate(classes)}
        column = {name: place for place, name in enumerate(replies)}
        table = numpy.zeros((len(classes), len(replies)), dtype=numpy.int64)
        for (label, found), n in self.counts.items():
            table[row[label], column[found]] = n
        return replies, table

    def by_class(self) -> Dict[str, ClassScores]:
        """Return the scores of each class; 0.0 if a denominator is 0."""
        n_labels: Counter = Counter()
        n_found: Counter = Counter()
        for (label, found), n in self.counts.items():
            n_labels[label] += n
            n_found[found] += n
        scores = {}
        for name in self.classes:
            right, labels, found = self.counts[name, name], n_labels[name], n_found[name]
            precision = right / found if found else 0.0
            recall = right / labels if labels else 0.0
            scores[name] = ClassScores(precision, recall, 2 * right / (labels + found), labels)
        return scores

    def most_confused(self, n: int = 20) -> List[Tuple[str, Optional[str], int]]:
        """Return the n pairs that are confused most often, as (class, other class replied,
        examples)."""
        pairs = [(label, found, count) for (label, found), count in self.counts.items()]
        wrong = [pair for pair in pairs if pair[0] != pair[1]]
        return sorted(wrong, key=lambda pair: (-pair[2], pair[0], pair[1] or ""))[:n]

    def summed(self, n: int, others: str) -> "ConfusionMatrix":
        """Return the same counts, in which only the classes that are confused most often are kept,
        and the others are merged into one.

        n (int): Number of classes to keep.
        others (str): Name of the merged class.
        """
        pairs = self.most_confused(len(self.counts))
        confused = [name for label, found, _ in pairs for name in (label, found)]
        kept = [name for name in dict.fromkeys([*confused, *self.classes]) if name is not None]
        names = dict.fromkeys(kept[n:], others)
        matrix = ConfusionMatrix()
        for (label, found), count in self.counts.items():
            known = None if found is None else names.get(found, found)
            matrix.counts[names.get(label, label), known] += count
        return matrix


def confusion_matrix(
    examples: Sequence[Tuple[Sequence[str], Message]], data: str
) -> ConfusionMatrix:
    """Return the confusion matrix of (labels, reply) pairs, without pairs that have no labels.

    data (str): Name of the data for the error message.
    RAISES (DataError): If labels are not classes: they rarely recur, and no classifier replied.
    """
    matrix = ConfusionMatrix()
    known = [(labels, reply) for labels, reply in examples if labels or "predicted_labels" in reply]
    is_classifier = bool(known) and all("classes" in reply for _, reply in known)
    n_labels = len({label for labels, _ in known for label in labels[:1]})
    if not known or not (is_classifier or n_labels * USUAL <= len(known)):
        text = f"has no classes to count: {n_labels:,} different labels in {len(known):,} examples"
        raise DataError(data, f"{text}. Classes are for classifiers and labels that recur.")
    for labels, reply in known:
        matrix.add(labels, reply)
    return matrix
