"""``compare``: tell whether one of two models is better."""

import argparse
import json
import sys
from typing import Dict

from .arguments import add_code, add_gpu, add_resamples, add_split, positive, with_gpu
from .evaluate import about_intervals
from .json_output import add_json_file
from .output import Messages, table
from .writing import write_text

EXAMPLES = [
    "compare output/a/model-best output/b/model-best",
    "compare output/a/model-best output/b/model-best --paths.test test.jsonl --json diff.json",
    "compare replies_a.jsonl replies_b.jsonl",
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    what = "folder of a saved model, or a file that evaluate --predictions wrote"
    parser.add_argument("a", metavar="A", help=what)
    parser.add_argument("b", metavar="B", help="the same")
    add_split(parser)
    add_json_file(parser, "all differences")
    add_resamples(parser, positive)
    add_code(parser)
    add_gpu(parser)


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Compare, and show or write the differences."""
    from ..api import compare
    from ..evaluation.results import is_of_words
    from ..loggers.row_file import finite

    found = compare(
        arguments.a,
        arguments.b,
        split=arguments.split,
        overrides=with_gpu(overrides, arguments.gpu_id),
        code=arguments.code,
        n_resamples=arguments.resamples,
    )
    text = json.dumps(finite(found.as_json()), indent=2)
    if arguments.json == "-":
        print(text)
        return 0
    rows = [["metric", "A", "B", "B - A", "95 % interval", "p"]]
    names = {one.metric for one in found.differences}
    shown = [one for one in found.differences if not is_of_words(one.metric, names)]
    for one in shown:
        ends = f"{one.low:+.4f} to {one.high:+.4f}"
        values = [f"{value:.4f}" for value in (one.a, one.b)]
        rows.append([one.metric, *values, f"{one.difference:+.4f}", ends, f"{one.p_value:.3f}"])
    print(table(rows))
    print()
    for one in shown:
        if one.winner:
            print(f"{one.verdict()}.")
    alike = [one.metric for one in shown if not one.winner]
    if alike:
        print(f"No difference can be told in {', '.join(alike)}.")
    messages = Messages(sys.stderr)
    messages.info(f"{about_intervals(found)}; {found.n_examples:,} examples, answered by both")
    if arguments.json:
        write_text(arguments.json, text + "\n", force=True)
        messages.good(f"Wrote {arguments.json}")
    return 0
