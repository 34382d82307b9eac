"""``train``: train, evaluate and save a model."""

import argparse
import shlex
import sys
from dataclasses import asdict, replace
from typing import Any, Dict, TextIO

from .arguments import add_code, add_config, add_gpu, with_gpu
from .dry_run import run_dry
from .exchanges import show_exchanges
from .json_output import add_json, print_json
from .output import Messages, no_terminal, table

EXAMPLES = [
    "train quickstart.cfg --output output/quickstart",
    "train ranker.cfg -o output/ranker --paths.train train.jsonl --paths.dev dev.jsonl",
    "train quickstart.cfg -o output/short --force --training.max_steps 100",
    "train ranker.cfg -o output/ranker --resume",
    "train ranker.cfg --dry-run --paths.train train.jsonl --paths.dev dev.jsonl",
    "train quickstart.cfg --json > scores.json",
]
INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_config(parser)
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", help="where to save model-best and model-last"
    )
    parser.add_argument(
        "--force", action="store_true", help="replace a run that is in the folder already"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on from the newest checkpoint in the folder; begin, if there is none",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="do all up to the first step, show counts and sizes, write nothing",
    )
    parser.add_argument(
        "--file-friendly",
        action="store_true",
        help="plain lines, also on a terminal: no progress bar, no colour",
    )
    add_json(parser, "scores at the end, and all else to stderr,")
    add_code(parser)
    add_gpu(parser)


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Train, show the scores, and say where the model lies."""
    from ..api import train

    stdout: TextIO = sys.stdout
    stderr: TextIO = sys.stderr
    if arguments.json:  # stdout is for it alone.
        stdout = stderr
    if arguments.file_friendly:
        stdout, stderr = no_terminal(stdout), no_terminal(stderr)
    messages = Messages(stderr)
    options: Dict[str, Any] = {
        "output": arguments.output,
        "overrides": with_gpu(overrides, arguments.gpu_id),
        "force": arguments.force,
        "resume": arguments.resume,
        "code": arguments.code,
        "stderr": stderr,
    }
    if arguments.dry_run:
        return run_dry(arguments, options)
    try:
        result = train(arguments.config, stdout=stdout, **options)
    except KeyboardInterrupt as interrupt:  # Its text is what was saved last.
        messages.warn(_how_to_go_on(interrupt, arguments, overrides))
        return getattr(interrupt, "exit_code", INTERRUPTED)
    if arguments.json:
        print_json(_facts(result))
    else:
        show_result(result)
    if result.output is None:
        messages.warn("The model was not saved: give a folder with --output.")
    else:
        best = result.output / "model-best"
        messages.good(f"Saved {best}")
        messages.info(f"Talk to it: python -m thincdialog chat {best}")
    return 0


def _facts(result: Any) -> Dict[str, Any]:
    facts = asdict(replace(result, samples=[]))
    del facts["samples"]
    samples = [
        [{"message": message, "reply": reply} for message, reply in exchanges]
        for exchanges in result.samples
    ]
    return {**facts, "samples": samples}


def _how_to_go_on(
    interrupt: KeyboardInterrupt, arguments: argparse.Namespace, overrides: Dict[str, str]
) -> str:
    if not arguments.output:
        return "Interrupted; nothing was saved: give a folder with --output."
    saved, is_resumable = str(interrupt), bool(getattr(interrupt, "saved", True))
    how = "--resume" if is_resumable or not saved else "--force"
    words = ["train", arguments.config, "--output", arguments.output, how]
    for name in ("code", "gpu_id"):
        value = getattr(arguments, name)
        words += [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
    for setting, value in overrides.items():
        words.append(f"--{setting}={value}")
    command = f"python -m thincdialog {shlex.join(words)}"
    if how == "--force":
        text = f"Saved {saved}, to be used as it is: there is no checkpoint to go on from"
        return f"{text}. Begin anew with: {command}"
    done = f"Saved {saved}" if saved else "Interrupted before there was anything to save"
    return f"{done}. Go on with: {command}"


def show_result(result: Any) -> None:
    """Why training ended, the scores beside the baselines', and sample exchanges."""
    summary = f"Ended: {result.stopped_because}."
    if result.n_parameters:
        summary += f" {result.n_parameters:,} parameters, {result.seconds:.1f} s of training,"
        summary += f" best step {result.best_step}."
    print(f"\n{summary}")
    rows = result.table()
    if len(rows) > 1:
        print("\n" + table(rows, n_left=rows[0].index("agent") + 1))
    if result.samples:
        print("\nSample exchanges:")
        show_exchanges(result.samples)
