"""``build``: make of the data once what training reads."""

import argparse

from .arguments import CODE, CONFIG, common, json_flag
from .json_output import print_json
from .output import messages, table

EXAMPLES = [
    "build ranker.cfg --loader.store stores/talk --paths.train train.jsonl --paths.dev dev.jsonl",
    "build quickstart.cfg --loader.store stores/coffee",
]

ABOUT = """
Reads the data, and writes into the folder of [loader] store what the teacher makes of it
behind its mutators, and the token ids that the agent's tokenizer makes of that. Training
then maps these files: data may be larger than memory, and nothing is tokenized twice.
What is there and up to date stays; what was made of other data, settings or code is made
anew. A build that was stopped goes on at the next call."""

ARGUMENTS = [CONFIG, json_flag("what was built"), CODE]


def run(arguments: argparse.Namespace) -> None:
    """Build, and show what became of each store."""
    from ..api import build

    found = build(arguments.config, **common(arguments))
    if arguments.json:
        print_json([{**each._asdict(), "folder": str(each.folder)} for each in found])
        return
    rows = [["store", "what was done", "examples", "MB"]]
    rows += [
        [
            each.name,
            f"built: {each.reason}" if each.reason else "nothing: it is up to date",
            f"{each.examples:,}",
            f"{each.size / 1e6:,.1f}",
        ]
        for each in found
    ]
    print(table(rows, n_left=2))
    messages.good("Training reads these.")
