"""Which class was found for which: exact counts, and how well each class is found."""

from collections import Counter
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from ..errors import DataError
from ..messages import Message
from .class_f1 import class_of

# So often, on average, a text must be the label of an example to be called a class.
USUAL = 10


class ClassScores(NamedTuple):
    """How well one class is found.

    precision (float): Share of the examples for which it was replied that are of it.
    recall (float): Share of its examples for which it was replied.
    f1 (float): Harmonic mean of the two.
    support (int): Its examples.
    """

    precision: float
    recall: float
    f1: float
    support: int


class ConfusionMatrix:
    """Counts of (class of the example, class replied).

    counts (Counter): The pairs; None is a reply without text. Of sets of labels, each label is a
        pair by itself: None in place of the class is a label too many, and in place of the reply a
        label that was missed.
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
        """All that are a label or a reply, sorted."""
        names = {name for pair in self.counts for name in pair}
        return sorted(name for name in names if name is not None)

    def table(self) -> Tuple[List[Optional[str]], numpy.ndarray]:
        """The replies, and the counts: a row for each class, a column for each reply.

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
        """How well each class is found; 0.0 where nothing was."""
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
        """The pairs (class, other class replied, examples) that are confused most often."""
        pairs = [(label, found, count) for (label, found), count in self.counts.items()]
        wrong = [pair for pair in pairs if pair[0] != pair[1]]
        return sorted(wrong, key=lambda pair: (-pair[2], pair[0], pair[1] or ""))[:n]

    def summed(self, n: int, others: str) -> "ConfusionMatrix":
        """The same counts, with all but the classes that are confused most often as one.

        n (int): Classes that are kept.
        others (str): Name of the one class.
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
    """The matrix of (labels, reply) pairs; those without labels are left out.

    data (str): What they are, for the error.
    RAISES (DataError): If labels are no classes: they rarely recur, and no classifier replied.
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
