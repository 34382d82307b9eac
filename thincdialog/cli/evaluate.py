"""``evaluate``: measure a saved model on a split of its data."""

import argparse
import json
import sys
from typing import Dict

from .arguments import add_code, add_gpu, add_model, with_gpu
from .output import Messages, table
from .writing import write_text

EXAMPLES = [
    "evaluate output/quickstart/model-best",
    "evaluate output/ranker/model-best --paths.test test.jsonl --json scores.json",
    "evaluate output/ranker/model-best --split dev --evaluation.n_candidates 100",
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_model(parser)
    parser.add_argument(
        "--split",
        choices=("train", "dev", "test"),
        default="test",
        help="which data, test if not given",
    )
    parser.add_argument("--json", metavar="FILE", help="write all scores to a file; - for stdout")
    add_code(parser)
    add_gpu(parser)


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Evaluate, and show or write the scores: all of them for one task, the usual ones
    in a row for each of several tasks."""
    from ..api import evaluate
    from ..training.results import report_parts, task_table

    report = evaluate(
        arguments.model,
        split=arguments.split,
        overrides=with_gpu(overrides, arguments.gpu_id),
        code=arguments.code,
    )
    text = json.dumps(dict(report), indent=2)
    if arguments.json == "-":
        print(text)
        return 0
    if len(report_parts(report)) > 1:
        print(table(task_table(report)))
    else:
        rows = [[name, _show(value)] for name, value in report.items()]
        print(table([["metric", arguments.split], *rows]))
    if arguments.json:
        write_text(arguments.json, text + "\n", force=True)
        Messages(sys.stderr).good(f"Wrote {arguments.json}")
    return 0


def _show(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) >= 2 else f"{value:.4f}"
