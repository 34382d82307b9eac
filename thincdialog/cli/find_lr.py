"""``find-lr``: find a learning rate with a short training in which the rate rises."""

import argparse

from .arguments import FORCE, argument, common, trial
from .output import can_show, messages, print_json, table

EXAMPLES = [
    "find-lr quickstart.cfg",
    "find-lr ranker.cfg --paths.train train.jsonl --start 1e-5 --end 10 --steps 200",
    "find-lr quickstart.cfg --png rates.png --training.optimizer.@optimizers Adam.v1",
]

ABOUT = """
Trains from scratch for a few steps while the learning rate grows exponentially, and shows the loss
at each rate. Suggests the rate at which the loss has fallen most of the way, but at most a tenth
of the rate at which the loss grows again or diverges. Writes no files except the picture, if you
give --png. Method: Smith 2017, https://arxiv.org/abs/1506.01186"""

ARGUMENTS = [
    argument("--start RATE", "learning rate of the first step (default: 1e-6)", float, 1e-6),
    argument("--end RATE", "learning rate of the last step", float, 1.0),
    argument("--png >FILE", "draw the curve into a .png or .svg file"),
    FORCE,
    *trial("number of steps", 100),
]


def run(arguments: argparse.Namespace) -> None:
    """Find a learning rate, and show the curve."""
    from ..api import find_lr
    from ..plotting.learn_rates import curve_rows, save_picture, terminal_curve

    found = find_lr(arguments.config, **common(arguments, "start", "end", "steps"))
    if arguments.json:
        print_json(found)
    else:
        has_dots = can_show("\u28ff")
        curve = terminal_curve(found) if len(found.losses) > 2 and has_dots else None
        print(table(curve_rows(found)) if curve is None else curve)
        print(f"\n{len(found.losses)} steps: {found.stopped_because}.")
        if found.suggestion is not None:
            print(f"Suggestion: --training.optimizer.learn_rate {found.suggestion:g}")
        print(found.why)
    if arguments.png:
        save_picture(found, arguments.png)
        messages.good(f"Wrote {arguments.png}")
