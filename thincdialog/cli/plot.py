"""``plot``: show the curves of training runs."""

import argparse
import shutil
import sys
from typing import Dict

from .output import Messages, has_colour

EXAMPLES = [
    "plot output/quickstart",
    "plot output/small output/large --against epoch",
    "plot output/* --metrics hits@1,dev/loss,learn_rate",
    "plot output/small output/large --png curves.png --svg curves.svg",
]
WIDEST = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "runs", metavar="RUN", nargs="+", help="output folder of a training run, or a log.jsonl"
    )
    parser.add_argument(
        "--metrics", metavar="A,B", help="what to show; the loss and the score if not given"
    )
    parser.add_argument(
        "--against",
        choices=("step", "epoch", "examples", "seconds"),
        default="step",
        help="what to lay it over, step if not given",
    )
    parser.add_argument("--png", metavar="FILE", help="draw a picture instead")
    parser.add_argument("--svg", metavar="FILE", help="draw a picture instead")


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Draw on the terminal, or into files."""
    from ..api import plot

    metrics = [name.strip() for name in (arguments.metrics or "").split(",") if name.strip()]
    files = [path for path in (arguments.png, arguments.svg) if path]
    text = plot(
        arguments.runs,
        metrics=metrics or None,
        against=arguments.against,
        files=files,
        width=min(shutil.get_terminal_size((80, 24)).columns, WIDEST),
        colour=has_colour(sys.stdout),
        braille=_shows_braille(),
    )
    if text:
        print(text)
    for path in files:
        Messages(sys.stderr).good(f"Wrote {path}")
    return 0


def _shows_braille() -> bool:
    try:
        "⣿┤".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
