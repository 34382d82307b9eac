"""``debug overfit``: check whether a model can memorise one batch."""

import argparse

from .arguments import common, trial
from .output import messages, print_json, table

EXAMPLES = [
    "debug overfit quickstart.cfg",
    "debug overfit ranker.cfg --paths.train train.jsonl --steps 500 --world.batcher.size 16",
]

ABOUT = """
Trains only on the first training batch, without dropout. If a model cannot memorise one batch, it
will not learn anything else either, and hints name the likely causes. Writes nothing. The exit
code is 0 if the model has memorised the batch, and otherwise 1."""


ARGUMENTS = trial("maximum number of steps", 200)


def run(arguments: argparse.Namespace) -> int:
    """Train on one batch, and report whether the model has memorised it."""
    from ..api import debug_overfit

    found = debug_overfit(arguments.config, **common(arguments, "steps"))
    if arguments.json:
        print_json({"is_memorised": found.is_memorised, **vars(found)})
    else:
        losses = [f"{loss:.4f}" for loss in found.losses] or ["-"]
        before = ["before", losses[0], f"{found.first_score:.1%}"]
        after = [f"after step {found.steps}", losses[-1], f"{found.last_score:.1%}"]
        print(table([["", "loss", "right replies"], before, after]))
    if found.is_memorised:
        messages.good(f"The model has memorised the batch of {found.examples} examples")
    else:
        best = ""
        if found.best_possible < 1:
            best = f" (at most {found.best_possible:.1%} can be: equal contexts, different labels)"
        messages.fail(f"The model has not memorised the batch of {found.examples} examples{best}")
    for hint in found.hints:
        messages.warn(hint)
    return 0 if found.is_memorised else 1
