"""``display-data``: show examples of a task, as the agent observes them."""

import argparse
from typing import Any, Dict, List

from .arguments import CONFIG, JSONL, MAX_LEN, argument, common, count, split
from .output import coloured, counted, messages, print_json, shorten

EXAMPLES = [
    "display-data quickstart.cfg",
    "dd ranker.cfg --paths.train train.jsonl -n 3 --tokens",
    "dd ranker.cfg --paths.dev dev.jsonl --split dev --jsonl > dev_examples.jsonl",
]

# Fields to show first, in this order.
FIRST = ("text", "labels", "eval_labels", "label_candidates")
HIDDEN = ("id", "context", "episode_done")

ARGUMENTS = [
    CONFIG,
    argument("-n --num-examples N", "examples to show, 0 for all", count, 10),
    split("train"),
    argument("--shuffle", "show the examples in training order"),
    argument("--tokens", "show the tokens of each text"),
    MAX_LEN,
    JSONL,
]


def run(arguments: argparse.Namespace) -> None:
    """Show examples, as text or as JSON lines."""
    from ..inspection.display import display_data

    options = common(arguments, "split", "shuffle", "tokens")
    shown = display_data(arguments.config, n_examples=arguments.num_examples, **options)
    n_shown = 0
    for message, pieces in shown:
        n_shown += 1
        if arguments.jsonl:
            print_json(message, indent=None)
        else:
            _show(message, pieces, arguments.max_len)
    messages.info(f"{counted(n_shown, 'example')} shown")


def _show(message: Any, pieces: Dict[str, List[str]], limit: int) -> None:
    print(coloured(f"- {message.get('id', '')} -", 1))
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
