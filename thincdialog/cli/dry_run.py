"""``train --dry-run``: show the results of a dry run."""

import argparse
from typing import Any, Dict, Optional

from .output import messages, print_json, table


def run_dry(arguments: argparse.Namespace, options: Dict[str, Any]) -> None:
    """Do everything up to the first step, and show counts and sizes.

    options (Dict[str, Any]): Arguments of ``train``.
    """
    from ..api import dry_run
    from ..inspection.dry_run import split_counts

    found = dry_run(arguments.config, **options)
    if arguments.json:
        print_json(found)
        return
    print(table(split_counts(found)))
    if found.n_parameters:
        _show_step(found)
    messages.good("Training can begin. Nothing was written.")


def _show_step(found: Any) -> None:
    rows = [
        ["first step", ""],
        ["examples", f"{found.step_examples:,}"],
        ["mean loss", f"{found.loss:.4f}"],
        ["steps per epoch", _as_estimate(found.steps_per_epoch)],
        ["steps in total, at most", _as_estimate(found.total_steps)],
        ["parameters", f"{found.n_parameters:,}"],
    ]
    print("\n" + table(rows))
    rows = [["memory without the data", "MB"]]
    sizes = {**found.memory, "together": sum(found.memory.values())}
    rows += [[name, f"{size / 1e6:,.1f}"] for name, size in sizes.items()]
    print("\n" + table(rows))


def _as_estimate(steps: Optional[int]) -> str:
    return "unknown" if steps is None else f"about {steps:,}"
