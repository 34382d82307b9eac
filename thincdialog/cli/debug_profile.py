"""``debug profile``: show where the time of training goes."""

import argparse
import dataclasses
import sys
from typing import Dict

from .arguments import add_trial, with_gpu
from .json_output import print_json
from .output import Messages, table

EXAMPLES = [
    "debug profile quickstart.cfg",
    "debug profile ranker.cfg --paths.train train.jsonl --steps 200 --gpu-id 0",
]

ABOUT = """
Trains for some steps and shows, for each layer and for what is no layer (in
parentheses), the milliseconds that a step spends in it: forward, backward, both without
the layers inside ("self"), with them ("total"), and its share of the step by "self". A
layer that stands in several places is timed in all of them. Writes nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_trial(parser, ABOUT, "steps to measure", 50)


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Measure, and show where the time goes."""
    from ..api import debug_profile

    found = debug_profile(
        arguments.config,
        steps=arguments.steps,
        overrides=with_gpu(overrides, arguments.gpu_id),
        code=arguments.code,
    )
    if arguments.json:
        print_json({**dataclasses.asdict(found), "overhead": found.overhead})
        return 0
    rows = [["ms a step", "calls", "forward", "backward", "self", "total", "share"]]
    for part in found.parts:
        if part.calls:
            times = (part.forward, part.backward, part.own, part.total)
            cells = [f"{value:.3f}" for value in times]
            rows.append([part.name, f"{part.calls:g}", *cells, f"{part.share:.1%}"])
    print(table(rows))
    print(
        f"\nA step of {found.examples_per_step:.0f} examples takes {found.plain_ms:.2f} ms; "
        f"measured {found.step_ms:.2f} ms ({found.overhead:+.0%})."
    )
    if found.eval_ms_per_example is not None:
        text = f"Evaluation takes {found.eval_ms_per_example:.3f} ms an example"
        if found.eval_examples and found.eval_share is not None:
            text += f"; with {found.eval_examples:,} examples each time that is due, "
            text += f"{found.eval_share:.0%} of a run"
        print(text + ".")
    if found.overhead > 0.2:
        text = "Measuring costs much here: many small layers look slower than they are."
        Messages(sys.stderr).warn(text)
    return 0
