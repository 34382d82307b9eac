"""``cross-validate``: train and test on folds of the training data."""

import argparse
from math import nan
from typing import Any

from .arguments import CONFIG, FORCE, GPU, argument, common, json_flag, number
from .classes import class_rows, classes_as_json, pair_rows
from .evaluate import of_classes
from .output import counted, messages, number_of, print_json, table, write_text

EXAMPLES = [
    "cross-validate intent.cfg --paths.train intents.csv",
    "cross-validate intent.cfg --paths.train intents.csv --folds 10 -j 4 --errors wrong.csv",
    "cross-validate ranker.cfg --paths.train train.jsonl --output output/folds",
]

ABOUT = """
Divides the training data of the config into folds. For each fold, a model is trained on the other
folds and tested on this fold, so it has not seen the examples that it is tested on. Each label is
spread evenly over the folds, and all turns of a conversation are in the same fold. The config's dev
data, if any, is used as in training; its test data is not used.

Prints the mean and the standard deviation of each score over the folds, and for a classifier the
scores of each class and the pairs of classes that are confused most. Each warning is shown
once, with the number of folds that raised it."""

# Columns of --errors.
COLUMNS = ["fold", "task", "id", "text", "reply", "score", "labels"]


ARGUMENTS = [
    CONFIG,
    argument("--folds N", "number of folds", number(int, 2), 5),
    argument("-j --jobs N", "folds to train at the same time", number(int, 1), 1),
    argument("--errors >FILE", "write every wrong reply with its fold as CSV"),
    argument("-o --output FOLDER", "keep the models of the folds in FOLDER"),
    json_flag("the scores"),
    FORCE,
    GPU,
]


def run(arguments: argparse.Namespace) -> int:
    """Train the folds and show the results; return 1 if a fold failed."""
    from ..api import cross_validate
    from ..formats.answer_lines import answer_lines

    options = common(arguments, "folds", "jobs", "output")
    found = cross_validate(arguments.config, done=_report_fold, **options)
    for note, numbers in found.notes.items():
        where = f"In {len(numbers)} folds" if numbers[1:] else f"Fold {numbers[0]}"
        messages.info(f"{where}: {note}")
    folds = [{"error": fold.error or None, "scores": fold.scores} for fold in found.folds]
    if arguments.json:
        has_pairs = any(fold.has_pairs for fold in found.folds)
        classes = classes_as_json(found.confusion, bool(found.confusion.counts), has_pairs)
        print_json({"scores": found.scores, "folds": folds, **classes})
    elif found.scores:
        _show(found)
    if arguments.errors:
        rows = (row for fold in found.folds for row in fold.wrong)
        lines = answer_lines(rows, "csv", COLUMNS)
        write_text(arguments.errors, "".join(f"{line}\n" for line in lines), arguments.force)
    return int(any(fold.error for fold in found.folds))


def _report_fold(number: int, fold: Any) -> None:
    if fold.error:
        messages.fail(f"Fold {number} failed: {fold.error}")
    else:
        n_examples = counted(int(fold.scores["examples"]), "example")
        messages.good(f"Fold {number}: {n_examples}, {len(fold.wrong)} with a wrong reply")


def _show(found: Any) -> None:
    good = {f"fold {n}": fold.scores for n, fold in enumerate(found.folds, 1) if not fold.error}
    rows = [["metric", "mean", "deviation", *good]]
    has_classes = bool(found.confusion.counts)
    for name in of_classes(found.scores) if has_classes else found.scores:
        values = [*found.scores[name], *(scores.get(name, nan) for scores in good.values())]
        rows.append([name, *(number_of(name, value) for value in values)])
    print(table(rows))
    if has_classes:
        print(f"\n{table(class_rows(found.confusion))}")
    if any(fold.has_pairs for fold in found.folds):
        print(f"\n{table(pair_rows(found.confusion), n_left=2)}")
