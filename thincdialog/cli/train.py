"""``train``: train, evaluate and save a model."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Dict, List

from .arguments import CONFIG, GPU, UsageError, argument, command_line, common, with_code
from .dry_run import run_dry
from .exchanges import show_exchanges
from .last_lines import last_lines
from .output import messages, print_json, table

EXAMPLES = [
    "train quickstart.cfg --output output/quickstart",
    "train ranker.cfg -o output/ranker --paths.train train.jsonl --paths.dev dev.jsonl",
    "train quickstart.cfg -o output/short --force --training.max_steps 100",
    "train ranker.cfg -o output/ranker --resume --paths.train train.jsonl --paths.dev dev.jsonl",
    "train intent.cfg -o output/mine --init-from output/intent/model-best "
    "--paths.train intents.csv",
    "train ranker.cfg --dry-run --paths.train train.jsonl --paths.dev dev.jsonl",
    "train quickstart.cfg --no-output --json > scores.json",
]

ARGUMENTS = [
    CONFIG,
    argument(
        "-o --output FOLDER",
        "folder for models, checkpoints and logs (default: output/NAME for NAME.cfg)",
    ),
    argument("--no-output", "save nothing"),
    argument("--force", "replace the run in the output folder"),
    argument("--resume", "resume from the newest checkpoint in the output folder, if there is one"),
    argument(
        "--init-from MODEL",
        "start from the weights of a saved model ([training] init_from)",
    ),
    argument(
        "--dry-run", "check everything up to the first step, show counts and sizes, write nothing"
    ),
    argument("--json", "print the final scores as JSON"),
    GPU,
]


def run(arguments: argparse.Namespace) -> int:
    """Train, show the scores with their meaning, and suggest next commands for the model."""
    from ..api import train

    if arguments.no_output and (arguments.output or arguments.force or arguments.resume):
        raise UsageError("--no-output saves nothing: leave out --output, --force and --resume")
    is_trial = arguments.no_output or (arguments.dry_run and not arguments.resume)
    if arguments.output is None and not is_trial:
        arguments.output = str(Path("output") / Path(arguments.config).name.removesuffix(".cfg"))
    if arguments.init_from is not None:
        arguments.overrides = {**arguments.overrides, "training.init_from": arguments.init_from}
    # With --json, stdout has only JSON.
    stdout = sys.stderr if arguments.json else sys.stdout
    options = common(arguments, "output", "force", "resume")
    if arguments.dry_run:
        run_dry(arguments, options)
        return 0
    try:
        result = train(arguments.config, stdout=stdout, **options)
    # The text of the exception names the folder that was saved last.
    except KeyboardInterrupt as interrupt:
        messages.warn(_resume_advice(interrupt, arguments))
        return getattr(interrupt, "exit_code", 130)
    if arguments.json:
        samples = [[{"message": m, "reply": r} for m, r in talk] for talk in result.samples]
        print_json({**vars(result), "samples": samples})
    else:
        show_result(result)
    if result.output is not None:
        messages.good(f"Saved {result.output / 'model-best'}")
    for line in last_lines(result, arguments):
        messages.info(line)
    return 0


def _resume_advice(interrupt: KeyboardInterrupt, arguments: argparse.Namespace) -> str:
    """Name the folder that an interrupted run has saved, and the command that resumes the run."""
    if not arguments.output:
        return "Interrupted; nothing was saved, because of --no-output."
    done, how = f"Saved {interrupt}", ["--resume"]
    if not str(interrupt):
        done = "Interrupted before there was anything to save"
        if arguments.force:
            done += "; earlier files are unchanged"
            how = ["--force", *how * arguments.resume]
    elif not getattr(interrupt, "saved", True):
        done += ", ready to use, but there is no checkpoint to resume from"
        how = ["--force"]
    command = train_command(arguments, [arguments.output, *how], arguments.overrides)
    return f"{done}. {'Resume' if how == ['--resume'] else 'Start again'} with: {command}"


def train_command(
    arguments: argparse.Namespace, output: List[str], overrides: Dict[str, Any]
) -> str:
    """Return a command line that trains with the config, code and device of ``arguments``.

    output (List[str]): The output folder, and the words after it.
    """
    words = ["train", arguments.config, "--output", *output, *with_code(arguments)]
    words += ["--allow-pickle"] * arguments.allow_pickle
    words += [] if arguments.gpu_id is None else ["--gpu-id", str(arguments.gpu_id)]
    texts = {name: x if isinstance(x, str) else json.dumps(x) for name, x in overrides.items()}
    return command_line(*words, *(f"--{name}={text}" for name, text in texts.items()))


def show_result(result: Any) -> None:
    """Print the reason why training ended, the scores with those of the baselines, and sample
    exchanges."""
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
