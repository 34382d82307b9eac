"""``display-data``: show examples of a task, as the agent will get them."""

import argparse
import sys
from typing import Any, Dict, List

from .arguments import add_code, add_config, add_split, count
from .json_output import add_jsonl, print_json
from .output import Messages, coloured, shorten

EXAMPLES = [
    "display-data quickstart.cfg",
    "dd ranker.cfg --paths.train train.jsonl -n 3 --tokens",
    "dd ranker.cfg --paths.dev dev.jsonl --split dev --jsonl > dev_examples.jsonl",
]

# Fields that are shown in this order, before any others.
FIRST = ("text", "labels", "eval_labels", "label_candidates")
HIDDEN = ("id", "context", "episode_done")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_config(parser)
    parser.add_argument("-n", "--num-examples", metavar="N", type=count, default=10,
                        help="examples to show, 10 if not given; 0 for all")  # fmt: skip
    add_split(parser, "train")
    parser.add_argument("--shuffle", action="store_true", help="in the order of training")
    parser.add_argument("--tokens", action="store_true", help="show how texts are tokenised")
    parser.add_argument("--max-len", metavar="N", type=count, default=300,
                        help="letters of a text to show; 0 for all")  # fmt: skip
    add_jsonl(parser)
    add_code(parser)


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Show examples, as text or as JSON lines."""
    from ..inspection.display import display_data

    shown = display_data(
        arguments.config,
        split=arguments.split,
        n_examples=arguments.num_examples,
        shuffle=arguments.shuffle,
        overrides=overrides,
        code=arguments.code,
        tokens=arguments.tokens,
    )
    n_shown = 0
    for message, pieces in shown:
        n_shown += 1
        if arguments.jsonl:
            print_json(message, indent=None)
        else:
            _show(message, pieces, arguments.max_len)
    Messages(sys.stderr).info(f"{n_shown} example{'' if n_shown == 1 else 's'} shown")
    return 0


def _show(message: Any, pieces: Dict[str, List[str]], limit: int) -> None:
    print(coloured(f"- {message.get('id', '')} -", 1, sys.stdout))
    for role, text in message.get("context", ()):
        print(f"  {'self' if role else 'partner':>16}  {shorten(text, limit)}")
    names = [name for name in FIRST if name in message]
    names += [name for name in message if name not in FIRST and name not in HIDDEN]
    for name in names:
        print(f"  {name:>16}  {shorten(_as_text(message[name]), limit)}")
        if name in pieces:
            print(f"  {'tokens':>16}  {shorten(' | '.join(pieces[name]), limit)}")
    if message.get("episode_done"):
        print()


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        texts = [str(element) for element in value]
        return texts[0] if len(texts) == 1 else f"({len(texts)}) {' | '.join(texts)}"
    if hasattr(value, "shape"):
        return f"{value.shape[0]} numbers, mean {float(value.mean()):.3f}"
    return str(value)
