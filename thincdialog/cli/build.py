"""``build``: preprocess the data into an on-disk store, once for all trainings."""

import argparse

from .arguments import CONFIG, common, json_flag
from .output import messages, print_json, table

EXAMPLES = [
    "build ranker.cfg --loader.store stores/talk --paths.train train.jsonl --paths.dev dev.jsonl",
    "build quickstart.cfg --loader.store stores/coffee",
]

ABOUT = """
Reads the data, applies the mutators and writes the examples and their token ids into the
folder [loader] store. Training then memory-maps these files, so your data may be larger than
memory and no text is tokenized twice. Files that are up to date are kept; files made from
other data, settings or code are built again. An interrupted build resumes at the next call."""

ARGUMENTS = [CONFIG, json_flag("the list of built files")]


def run(arguments: argparse.Namespace) -> None:
    """Build, and show the outcome for each store."""
    from ..api import build

    found = build(arguments.config, **common(arguments))
    if arguments.json:
        print_json([each._asdict() for each in found])
        return
    rows = [["store", "result", "examples", "MB"]]
    for each in found:
        done = f"built: {each.reason}" if each.reason else "up to date"
        rows.append([each.name, done, f"{each.examples:,}", f"{each.size / 1e6:,.1f}"])
    print(table(rows, n_left=2))
    messages.good("Training reads these.")
