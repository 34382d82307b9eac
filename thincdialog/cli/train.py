"""``train``: train, evaluate and save a model."""

import argparse
import json
import sys
from dataclasses import asdict, replace
from typing import Any, Dict, List

from .arguments import CODE, CONFIG, GPU, argument, command_line, common, json_flag, with_code
from .dry_run import run_dry
from .exchanges import show_exchanges
from .json_output import print_json
from .output import Messages, NoTerminal, table

EXAMPLES = [
    "train quickstart.cfg --output output/quickstart",
    "train ranker.cfg -o output/ranker --paths.train train.jsonl --paths.dev dev.jsonl",
    "train quickstart.cfg -o output/short --force --training.max_steps 100",
    "train ranker.cfg -o output/ranker --resume --paths.train train.jsonl --paths.dev dev.jsonl",
    "train intent.cfg -o output/mine --init-from output/intent/model-best "
    "--paths.train intents.csv",
    "train ranker.cfg --dry-run --paths.train train.jsonl --paths.dev dev.jsonl",
    "train quickstart.cfg --json > scores.json",
]

ARGUMENTS = [
    CONFIG,
    argument("-o --output FOLDER", "where to save model-best and model-last"),
    argument("--force", "replace a run that is in the folder already"),
    argument("--resume", "go on from the newest checkpoint in the folder; begin, if there is none"),
    argument(
        "--init-from MODEL",
        "begin with the weights of a saved model, or of a run's best ([training] init_from)",
    ),
    argument("--dry-run", "do all up to the first step, show counts and sizes, write nothing"),
    argument("--file-friendly", "plain lines, also on a terminal: no progress bar, no colour"),
    json_flag("the scores at the end"),
    CODE,
    GPU,
]


def run(arguments: argparse.Namespace) -> int:
    """Train, show the scores, and say where the model lies."""
    from ..api import train

    if arguments.init_from is not None:
        arguments.overrides = {**arguments.overrides, "training.init_from": arguments.init_from}
    # JSON has stdout for itself.
    stdout: Any = sys.stderr if arguments.json else sys.stdout
    stderr: Any = sys.stderr
    if arguments.file_friendly:
        stdout, stderr = NoTerminal(stdout), NoTerminal(stderr)
    messages = Messages(stderr)
    options = {"stderr": stderr, **common(arguments, "output", "force", "resume")}
    if arguments.dry_run:
        run_dry(arguments, options)
        return 0
    try:
        result = train(arguments.config, stdout=stdout, **options)
    except KeyboardInterrupt as interrupt:  # Its text is what was saved last.
        messages.warn(_how_to_go_on(interrupt, arguments))
        return getattr(interrupt, "exit_code", 130)
    if arguments.json:
        print_json(_facts(result))
    else:
        show_result(result)
    if result.output is None:
        messages.warn("The model was not saved: give a folder with --output.")
    else:
        best = result.output / "model-best"
        messages.good(f"Saved {best}")
        if result.can_chat:
            messages.info(f"Talk to it: {command_line('chat', str(best), *with_code(arguments))}")
    return 0


def _facts(result: Any) -> Dict[str, Any]:
    samples = [
        [{"message": message, "reply": reply} for message, reply in exchanges]
        for exchanges in result.samples
    ]
    return {**asdict(replace(result, samples=[])), "samples": samples}


def _how_to_go_on(interrupt: KeyboardInterrupt, arguments: argparse.Namespace) -> str:
    if not arguments.output:
        return "Interrupted; nothing was saved: give a folder with --output."
    saved, is_resumable = str(interrupt), bool(getattr(interrupt, "saved", True))
    if not saved and arguments.force:
        again = [arguments.output, "--force", *["--resume"] * arguments.resume]
        command = train_command(arguments, again, arguments.overrides)
        text = "Interrupted before there was anything to save; what was saved before is untouched"
        return f"{text}. Begin anew with: {command}"
    how = "--resume" if is_resumable or not saved else "--force"
    command = train_command(arguments, [arguments.output, how], arguments.overrides)
    if how == "--force":
        text = f"Saved {saved}, to be used as it is: there is no checkpoint to go on from"
        return f"{text}. Begin anew with: {command}"
    done = f"Saved {saved}" if saved else "Interrupted before there was anything to save"
    return f"{done}. Go on with: {command}"


def train_command(
    arguments: argparse.Namespace, output: List[str], overrides: Dict[str, Any]
) -> str:
    """The command line that trains with the config, the code and the device of another.

    output (List[str]): Where to, and what follows it.
    """
    words = ["train", arguments.config, "--output", *output]
    words += with_code(arguments)
    words += [] if arguments.gpu_id is None else ["--gpu-id", str(arguments.gpu_id)]
    for setting, value in overrides.items():
        words.append(f"--{setting}={value if isinstance(value, str) else json.dumps(value)}")
    return command_line(*words)


def show_result(result: Any) -> None:
    """Why training ended, the scores beside the baselines', and sample exchanges."""
    summary = f"Ended: {result.stopped_because}."
    if result.n_parameters:
        summary += f" {result.n_parameters:,} parameters, {result.seconds:.1f} s of training,"
        summary += f" best step {result.best_step}."
    print(f"\n{summary}")
    if result.left_out:
        counts = ", ".join(f"{n:,} of {path}" for path, n in result.left_out.items())
        print(f"Conversations or examples left out: {counts}.")
    rows = result.table()
    if len(rows) > 1:
        print("\n" + table(rows, n_left=rows[0].index("agent") + 1))
    if result.samples:
        print("\nSample exchanges:")
        show_exchanges(result.samples)
