"""``evaluate``: measure a saved model on a split of its data."""

import argparse
import json
import sys
from typing import Any, Dict

from .arguments import add_code, add_gpu, add_model, add_resamples, add_split, count, with_gpu
from .classes import classes_as_json, show_classes
from .json_output import add_json_file
from .output import Messages, number_of, table
from .writing import write_text

EXAMPLES = [
    "evaluate output/quickstart/model-best",
    "evaluate output/ranker/model-best --paths.test test.jsonl --json scores.json",
    "evaluate output/ranker/model-best --split dev --evaluation.n_candidates 100",
    "evaluate output/ranker/model-best --predictions replies.jsonl",
    "evaluate output/intent/model-best --per-class --confusion --confusion-png matrix.png",
]

OF_CLASSES = ("examples", "accuracy", "macro_f1", "weighted_f1", "loss")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_model(parser)
    add_split(parser)
    add_json_file(parser, "all scores and intervals")
    parser.add_argument(
        "--predictions", metavar="FILE", help="write each example with its reply, a JSON line each"
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=count,
        default=10,
        help="candidates in --predictions, 10 if not given",
    )
    parser.add_argument("--per-class", action="store_true", help="how well each class is found")
    parser.add_argument("--confusion", action="store_true", help="which class is found for which")
    parser.add_argument(
        "--confusion-png", metavar="FILE", help="the same as a picture (needs the extra plot)"
    )
    add_resamples(parser)
    add_code(parser)
    add_gpu(parser)


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Evaluate, and show or write the scores: all of them for one task, the usual ones
    in a row for each of several tasks."""
    from ..api import evaluate_in_detail, write_predictions
    from ..evaluation.results import report_parts, task_table
    from ..loggers.row_file import finite

    found = evaluate_in_detail(
        arguments.model,
        split=arguments.split,
        overrides=with_gpu(overrides, arguments.gpu_id),
        code=arguments.code,
        n_resamples=arguments.resamples,
    )
    wants_classes = arguments.per_class or arguments.confusion or arguments.confusion_png
    matrix = found.confusion() if wants_classes else None
    messages = Messages(sys.stderr)
    text = json.dumps(finite({**found.as_json(), **classes_as_json(matrix, arguments)}), indent=2)
    if arguments.json == "-":
        print(text)
    else:
        _show_scores(found, report_parts, task_table)
        if found.intervals:
            messages.info(about_intervals(found))
    if matrix is not None:
        # With the scores on stdout, that is for them alone.
        show_classes(matrix, arguments, sys.stderr if arguments.json == "-" else sys.stdout)
    if arguments.json and arguments.json != "-":
        write_text(arguments.json, text + "\n", force=True)
        messages.good(f"Wrote {arguments.json}")
    if arguments.predictions:
        rows = [row for rows in found.predictions.values() for row in rows]
        write_predictions(arguments.predictions, rows, found.metrics, arguments.top)
        messages.good(f"Wrote {arguments.predictions}")
    if matrix is not None and arguments.confusion_png:
        from ..plotting.confusion import draw_confusion

        draw_confusion(matrix, arguments.confusion_png)
        messages.good(f"Wrote {arguments.confusion_png}")
    return 0


def _show_scores(found: Any, report_parts: Any, task_table: Any) -> None:
    if len(report_parts(found.scores)) > 1:
        print(table(task_table(found.scores, found.intervals)))
        return
    rows = [["metric", found.split, *(["95 % interval"] if found.intervals else [])]]
    scores = of_classes(found.scores) if found.has_classes else found.scores
    for name, value in scores.items():
        ends = found.intervals.get(name)
        shown = [f"{ends[0]:.4f} to {ends[1]:.4f}" if ends else ""] if found.intervals else []
        rows.append([name, number_of(name, value), *shown])
    print(table(rows))


def of_classes(scores: Dict[str, float]) -> Dict[str, float]:
    """The scores of a classifier without those of single words, which would look like scores
    of classes; accuracy and what else tells of classes first. All are in ``--json``."""
    from ..evaluation.results import is_of_words

    kept = {name: value for name, value in scores.items() if not is_of_words(name, scores)}
    return {name: kept[name] for name in dict.fromkeys((*OF_CLASSES, *kept)) if name in kept}


def about_intervals(found: Any) -> str:
    """What the intervals are, in a line."""
    times = f"{found.n_resamples:,} times anew"
    return f"95 % intervals: bootstrap, {found.n_drawn:,} {found.drawn} drawn {times}"
