"""``sweep``: train with many settings, and compare the runs."""

import argparse
from typing import Any, Dict, List

from .arguments import CONFIG, GPU, UsageError, argument, common, count, json_flag
from .output import messages, print_json, table
from .results import result_rows
from .train import train_command

EXAMPLES = [
    "sweep quickstart.cfg --over training.optimizer.learn_rate=0.001,0.01 -o output/rates",
    "sweep ranker.cfg --over agent.model.encoder.width=64,128 --over system.seed=0,1,2 "
    "-o output/widths --paths.train train.jsonl --paths.dev dev.jsonl",
    "sweep quickstart.cfg --over training.optimizer.learn_rate=log:1e-4..1e-1 "
    "--over agent.model.encoder.depth=int:0..3 --random 20 --seed 1 -o output/random",
]

ABOUT = """
Trains one run for each combination of the values, one after the other, each in its own folder
inside FOLDER. Run the same command again to resume: finished runs are skipped, and an interrupted
run continues from its checkpoint. If a run fails, the failure is recorded and the next run starts.
With --random, values are drawn from lists or from ranges (bounds included):

  log:1e-4..1e-1   uniform in the logarithm
  uniform:0..0.5   uniform
  int:1..8         whole numbers

Prints a table at the end, the best run on dev first. The exit code is 0 if any run has finished."""

ARGUMENTS = [
    CONFIG,
    argument("--over KEY=V1,V2",
             "a setting with its values or a range; repeat it for several settings",
             action="append", required=True),
    argument("-o --output FOLDER", "output folder; each run gets a subfolder", required=True),
    argument("--random N", "number of random combinations (default: all combinations)", count, 0),
    argument("--seed N", "seed for --random", count, 0),
    argument("--retry", "retry runs that failed before"),
    json_flag("runs and results"),
    GPU,
]  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Train all runs, and show their results."""
    from ..api import sweep

    over = _read_over(arguments.over)
    try:
        options = common(arguments, "random", "seed", "retry")
        found = sweep(arguments.config, over, arguments.output, **options)
    except KeyboardInterrupt as interrupt:
        messages.warn("Interrupted; run the same command again to resume the unfinished runs")
        return int(getattr(interrupt, "exit_code", 130))
    if arguments.json:
        best = None if found.best is None else found.best.name
        facts = {"output": found.output, "best": best, "runs": found.runs, "results": found.results}
        print_json(facts)
    elif found.results:
        print("\n" + table(result_rows(found.results, list(found.results[0].settings))))
    for failed in found.runs:
        if failed.state == "failed":
            messages.fail(f"{failed.name} failed: {failed.error}")
    if any(failed.state == "failed" for failed in found.runs) and not arguments.retry:
        messages.info("Failed runs are trained again with --retry")
    if found.best is not None and not arguments.json:
        print(f"\nBest: {found.output / found.best.name}. To train it separately:")
        overrides = {**arguments.overrides, **found.best.overrides}
        print(f"  {train_command(arguments, [f'{arguments.output}-best'], overrides)}")
    elif found.results and not arguments.json:
        messages.warn("Without dev data, the best run cannot be determined")
    return 0 if found.results else 1


def _read_over(options: List[str]) -> Dict[str, Any]:
    """Parse ``--over`` options: setting to values, or to the text of a range.

    RAISES (UsageError): If an option does not have the form key=values.
    """
    from ..runs.sweep_values import is_range

    over: Dict[str, Any] = {}
    for option in options:
        name, equals, text = option.partition("=")
        name = name.removeprefix("--").replace("-", "_")
        if not equals or not name:
            raise UsageError(f"--over {option}: write a setting and its values, key=v1,v2")
        if name in over:
            raise UsageError(f"--over {name} is given twice: list all values in one")
        over[name] = text if is_range(text) else _split(text)
    return over


def _split(text: str) -> List[str]:
    """Split a text at its commas, except those within brackets or quotes."""
    values, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == '"'
        depth += 0 if quoted else (letter in "[{") - (letter in "]}")
        if letter == "," and not depth and not quoted:
            values.append("")
        else:
            values[-1] += letter
    return [value.strip() for value in values]
