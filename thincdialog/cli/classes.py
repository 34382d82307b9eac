"""Show the scores of each class, and which classes are confused."""

import argparse
from typing import Any, Dict, List, TextIO

from .output import shorten, table

# Maximum number of classes for a table of all pairs, and number of pairs to show if there are more.
MOST_CLASSES = 20
N_PAIRS = 20
NO_REPLY = "(no reply)"


def show_classes(matrix: Any, arguments: argparse.Namespace, stream: TextIO) -> None:
    """Print the output of ``--per-class`` and ``--confusion``.

    matrix (ConfusionMatrix): The counts.
    arguments (Namespace): The arguments with both flags.
    stream (TextIO): Stream to print to.
    """
    if arguments.per_class:
        stream.write("\n" + table(class_rows(matrix)) + "\n")
    if arguments.confusion:
        rows_of = confusion_rows if len(matrix.classes) <= MOST_CLASSES else pair_rows
        stream.write("\n" + table(rows_of(matrix), n_left=2) + "\n")


def classes_as_json(matrix: Any, per_class: bool, confusion: bool) -> Dict[str, Any]:
    """Return the output for JSON: `classes` by name, `confusion` as [class, replied, examples]."""
    value: Dict[str, Any] = {}
    if per_class:
        value["classes"] = {name: row._asdict() for name, row in matrix.by_class().items()}
    if confusion:
        pairs = sorted(matrix.counts.items(), key=lambda pair: (pair[0][0], pair[0][1] or ""))
        value["confusion"] = [[*names, n] for names, n in pairs if n]
    return value


def class_rows(matrix: Any) -> List[List[str]]:
    """Return the header and a row for each class."""
    rows = [["class", "precision", "recall", "f1", "examples"]]
    for name, scores in matrix.by_class().items():
        shares = [f"{share:.3f}" for share in scores[:3]]
        rows.append([shorten(name, 40), *shares, str(scores.support)])
    return rows


def confusion_rows(matrix: Any) -> List[List[str]]:
    """Return the header and a row for each class, with the number of times that each class was
    replied; "." for never."""
    replies, counts = matrix.table()
    numbers = [str(number) if name else NO_REPLY for number, name in enumerate(replies, start=1)]
    rows = [["", "class, replied as", *numbers]]
    for number, (name, row) in enumerate(zip(matrix.classes, counts.tolist()), start=1):
        rows.append([str(number), shorten(name, 40), *(str(n) if n else "." for n in row)])
    return rows


def pair_rows(matrix: Any) -> List[List[str]]:
    """Return the header and a row for each of the most confused pairs."""
    rows = [["class", "replied", "examples", "of its examples"]]
    by_class = matrix.by_class()
    for label, found, n in matrix.most_confused(N_PAIRS):
        share = f"{100 * n / by_class[label].support:.1f} %"
        name = NO_REPLY if found is None else shorten(found, 40)
        rows.append([shorten(label, 40), name, str(n), share])
    return rows
