"""``compare``: test whether one of two models is better."""

import argparse

from .arguments import FORCE, GPU, argument, common, json_file, positive, resamples, split
from .evaluate import about_intervals
from .output import messages, table, write_json

EXAMPLES = [
    "compare output/quickstart output/small",
    "compare output/quickstart/model-best output/small/model-last --split dev --json diff.json",
    "compare best.jsonl small.jsonl",
]

ARGUMENTS = [
    argument("A", "folder of a run or a saved model, or a file from evaluate --predictions"),
    argument("B", "second folder or file, of any kind that A may have"),
    split("test"),
    json_file("all differences"),
    resamples(positive),
    FORCE,
    GPU,
]


def run(arguments: argparse.Namespace) -> None:
    """Compare, and show or write the differences."""
    from ..api import compare
    from ..evaluation.results import is_of_words

    options = {"n_resamples": arguments.resamples, **common(arguments, "split")}
    found = compare(arguments.a, arguments.b, **options)
    if arguments.json == "-":
        write_json("-", found.as_json())
        return
    rows = [["metric", "A", "B", "B - A", "95 % interval", "p"]]
    names = {one.metric for one in found.differences}
    shown = [one for one in found.differences if not is_of_words(one.metric, names)]
    for one in shown:
        has_ends = one.low is not None
        ends = f"{one.low:+.4f} to {one.high:+.4f}" if has_ends else "-"
        values = [f"{one.a:.4f}", f"{one.b:.4f}", f"{one.difference:+.4f}"]
        rows.append([one.metric, *values, ends, f"{one.p_value:.3f}" if has_ends else "-"])
    print(table(rows) + "\n")
    print("".join(f"{one.verdict()}.\n" for one in shown if one.winner), end="")
    alike = [one.metric for one in shown if not one.winner]
    if alike:
        print(f"No significant difference in {', '.join(alike)}.")
    messages.info(f"{about_intervals(found)}; {found.n_examples:,} examples, answered by both")
    if arguments.json:
        write_json(arguments.json, found.as_json())
