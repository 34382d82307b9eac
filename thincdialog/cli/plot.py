"""``plot``: show the curves of training runs."""

import argparse
import shutil
import sys

from .arguments import FORCE, argument, listed
from .output import can_show, has_colour, messages

EXAMPLES = [
    "plot output/quickstart",
    "plot output/quickstart output/small --against epoch",
    "plot output/* --metrics hits@1,dev/loss,learn_rate",
    "plot output/quickstart output/small --png curves.png --svg curves.svg",
]
WIDEST = 100

ARGUMENTS = [
    argument("RUN...", "output folder of a training run, or its log.jsonl", dest="runs"),
    argument("--metrics A,B", "metrics to show (default: the loss and the score)", listed),
    argument("--against", "unit of the x axis", default="step",
             choices=("step", "epoch", "examples", "seconds")),
    argument("--png >FILE", "write a PNG picture instead of drawing on the terminal"),
    argument("--svg >FILE", "write an SVG picture instead of drawing on the terminal"),
    FORCE,
]  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    """Draw on the terminal, or into files."""
    from ..api import plot
    from ..runs.find_runs import lost_rows

    files = [path for path in (arguments.png, arguments.svg) if path]
    text = plot(
        arguments.runs,
        metrics=arguments.metrics or None,
        against=arguments.against,
        files=files,
        width=min(shutil.get_terminal_size((80, 24)).columns, WIDEST),
        colour=has_colour(sys.stdout),
        braille=can_show("⣿┤"),
    )
    for line in lost_rows(arguments.runs):
        messages.warn(line)
    if text:
        print(text)
    for path in files:
        messages.good(f"Wrote {path}")
