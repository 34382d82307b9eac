"""``plot``: show the curves of training runs."""

import argparse
import shutil
import sys

from .arguments import FORCE, argument, listed
from .output import can_show, has_colour, messages
from .writing import check_outputs

EXAMPLES = [
    "plot output/quickstart",
    "plot output/quickstart output/small --against epoch",
    "plot output/* --metrics hits@1,dev/loss,learn_rate",
    "plot output/quickstart output/small --png curves.png --svg curves.svg",
]
WIDEST = 100

ARGUMENTS = [
    argument("RUN...", "output folder of a training run, or a log.jsonl", dest="runs"),
    argument("--metrics A,B", "what to show; the loss and the score if not given", listed),
    argument("--against", "the x axis, step if not given", default="step",
             choices=("step", "epoch", "examples", "seconds")),
    argument("--png FILE", "write a PNG picture, in place of one on the terminal"),
    argument("--svg FILE", "write an SVG picture, in place of one on the terminal"),
    FORCE,
]  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    """Draw on the terminal, or into files."""
    from ..api import plot

    files = [path for path in (arguments.png, arguments.svg) if path]
    check_outputs(arguments, "png", "svg")
    text = plot(
        arguments.runs,
        metrics=arguments.metrics or None,
        against=arguments.against,
        files=files,
        width=min(shutil.get_terminal_size((80, 24)).columns, WIDEST),
        colour=has_colour(sys.stdout),
        braille=can_show("⣿┤"),
    )
    if text:
        print(text)
    for path in files:
        messages.good(f"Wrote {path}")
