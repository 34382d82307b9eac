"""``evaluate``: measure a saved model on a split of its data."""

import argparse
import sys
from math import isnan
from typing import Any, Dict, List, TextIO

from ..errors import DialogError, OutputError
from ..files.saved_model import model_folder
from .arguments import FORCE, GPU, MODEL, argument, common, count, json_file, resamples, split
from .classes import classes_as_json, show_classes
from .output import messages, number_of, table, write_json

EXAMPLES = [
    "evaluate output/quickstart",
    "evaluate output/ranker/model-best --paths.test test.jsonl --json scores.json",
    "evaluate output/ranker/model-best --split dev --evaluation.n_candidates 100",
    "evaluate output/ranker/model-best --predictions replies.jsonl",
    "evaluate output/intent/model-best --per-class --confusion --confusion-png matrix.png",
    "evaluate output/intent/model-best --coverage --coverage-png coverage.png",
]

OF_CLASSES = (
    "examples", "accuracy", "micro_f1", "micro_precision", "micro_recall", "macro_f1",
    "macro_precision", "macro_recall", "weighted_f1", "exact_match", "loss",
)  # fmt: skip

ARGUMENTS = [
    MODEL,
    split("test"),
    json_file("all scores and intervals"),
    argument(
        "--predictions >FILE",
        "write every example with the model's reply as JSON lines (- for stdout); needs no labels",
    ),
    argument("--top N", "candidates per example in --predictions", count, 10),
    argument("--per-class", "show precision, recall and F1 of each class"),
    argument("--confusion", "show the confusion matrix"),
    argument(
        "--confusion-png >FILE", "draw the confusion matrix into a file (needs the extra plot)"
    ),
    argument("--coverage", "show the share of the texts that get an answer at each precision"),
    argument(
        "--coverage-png >FILE",
        "draw precision against the share of answered texts into a file (needs the extra plot)",
    ),
    resamples(count),
    FORCE,
    GPU,
]


def run(arguments: argparse.Namespace) -> None:
    """Evaluate, and show or write all scores; with several tasks, show one row for each."""
    from ..api import evaluate_in_detail, write_predictions
    from ..evaluation.coverage import coverage

    options = {"n_resamples": arguments.resamples, **common(arguments, "split")}
    options["labels_needed"] = not arguments.predictions  # Writing replies needs no labels.
    found = evaluate_in_detail(arguments.model, **options)
    wants_classes = arguments.per_class or arguments.confusion or arguments.confusion_png
    if (arguments.confusion or arguments.confusion_png) and found.has_label_sets:
        text = "a confusion matrix needs one class per text, and this model predicts several"
        raise DialogError(f"{text} labels: use --per-class")
    if arguments.predictions:
        write_predictions(arguments.predictions, found.rows, found.metrics, arguments.top)
        if arguments.predictions != "-":
            messages.good(f"Wrote {arguments.predictions}")
    matrix = found.confusion() if wants_classes else None
    guesses = found.guesses() if arguments.coverage or arguments.coverage_png else None
    # JSON has stdout for itself.
    stream = sys.stderr if "-" in (arguments.json, arguments.predictions) else sys.stdout
    for bad in found.bad_data:
        messages.warn(bad.summary())
    if not found.labelled:
        messages.warn(f"No example of {found.split} has a label: nothing is scored")
    elif arguments.json != "-":
        _show_scores(found, stream)
    n_rows, n_unscored = len(found.rows), len(found.rows) - len(found.scored)
    if found.labelled and n_unscored:
        text = f"{n_unscored:,} of {n_rows:,} examples have no label, and are not scored"
        messages.warn(f"{found.split}: {text}")
    if matrix is not None:
        show_classes(matrix, arguments, stream)
    facts = classes_as_json(matrix, arguments.per_class, arguments.confusion)
    if guesses is not None and arguments.coverage:
        facts["coverage"] = coverage(guesses, found.threshold)
        show_coverage(facts["coverage"], stream)
    if arguments.json:
        write_json(arguments.json, {**found.as_json(), **facts})
    if found.intervals and not arguments.overrides:  # Measured on the data of the model's config.
        _write_intervals(arguments.model, found)
    if matrix is not None and arguments.confusion_png:
        from ..plotting.confusion import draw_confusion

        draw_confusion(matrix, arguments.confusion_png)
        messages.good(f"Wrote {arguments.confusion_png}")
    if guesses is not None and arguments.coverage_png:
        from ..plotting.coverage import draw_coverage

        draw_coverage(guesses, found.threshold, arguments.coverage_png)
        messages.good(f"Wrote {arguments.coverage_png}")


def _write_intervals(model: str, found: Any) -> None:
    from ..runs.model_card import write_intervals

    try:
        if write_intervals(model_folder(model), found):
            messages.good(f"Wrote the intervals into the model card of {model}")
    except OutputError as error:  # A model in a read-only folder can be evaluated, too.
        messages.warn(str(error))


def _show_scores(found: Any, stream: TextIO) -> None:
    from ..evaluation.results import report_parts, task_table

    if len(report_parts(found.scores)) > 1:
        rows = task_table(found.scores, found.intervals)
    else:
        rows = [["metric", found.split, *(["95 % interval"] if found.intervals else [])]]
        scores = of_classes(found.scores) if found.has_classes else found.scores
        for name, value in scores.items():
            low, high = found.intervals.get(name) or (None, None)
            ends = "" if low is None else f"{low:.4f} to {high:.4f}"
            rows.append([name, number_of(name, value), *([ends] if found.intervals else [])])
    stream.write(f"{table(rows)}\n")
    if calibration := found.calibration():
        text = "{after:.4f} (not calibrated: only model-best is, with enough dev data)"
        if calibration["temperature"] != 1.0:
            text = "{before:.4f}, and {after:.4f} once calibrated (temperature {temperature:.3f})"
        messages.info("Expected calibration error: " + text.format(**calibration))
    if found.intervals:
        messages.info(about_intervals(found))
    if found.warning:
        messages.warn(f"{found.split}: {found.warning}")


def of_classes(scores: Dict[str, float]) -> Dict[str, float]:
    """Return the scores of a classifier, ``OF_CLASSES`` first. Scores of single words are left
    out, because they would look like scores of classes; ``--json`` has them all."""
    from ..evaluation.results import is_of_words

    kept = {name: value for name, value in scores.items() if not is_of_words(name, scores)}
    return {name: kept[name] for name in dict.fromkeys((*OF_CLASSES, *kept)) if name in kept}


def about_intervals(found: Any) -> str:
    """Describe the intervals in one line."""
    times = f"{found.n_resamples:,} times"
    return f"95 % intervals: bootstrap, {found.n_drawn:,} {found.drawn} drawn {times}"


def show_coverage(found: Any, stream: TextIO) -> None:
    """Print a row for each precision and for the model's threshold; then, if there are texts out of
    scope, the fraction of these that the model finds.

    found (Dict[str, Optional[Dict[str, Any]]]): Result of ``coverage``.
    stream (TextIO): Stream to print to.
    """
    rows = [["precision", "threshold", "answered", "95 % interval", "right of these", "interval"]]
    for name, row in found.items():
        cells = ["not reached", *[""] * 4]
        if row is not None:
            cells = [f"{row['threshold']:.6g}", *_share(row["answered"]), *_share(row["precision"])]
        rows.append([name, *cells])
    stream.write(f"\n{table(rows)}\n")
    own = found["model"]
    if not isnan(own["out-of-scope recall"][0]):
        rows = [[f"at {own['threshold']:.6g}", "share", "95 % interval"]]
        measured = (name for name in list(own)[3:-1] if not isnan(own[name][0]))
        rows += [[name, *_share(own[name])] for name in measured]
        if not isnan(own["AUROC"]):
            rows.append(["AUROC", f"{own['AUROC']:.4f}", ""])
        stream.write(f"\n{table(rows)}\n")


def _share(share: Any) -> List[str]:
    if isnan(share[0]):  # The share of no texts.
        return ["-", ""]
    return [f"{share[0]:.4f}", f"{share[1]:.4f} to {share[2]:.4f}"]
