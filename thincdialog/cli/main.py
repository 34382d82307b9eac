"""Find the command on the command line, run it, and report errors."""

import argparse
import errno
import importlib
import os
import sys
import traceback
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .. import __version__
from ..errors import ConfigError, DialogError, WorkerError, closest
from ..files.pickles import allowing
from .arguments import COMMON, UsageError, declare
from .completion import DEFAULTS, complete, settings_in
from .output import messages
from .overrides import split_overrides

INTERRUPTED = 130
TRACEBACK = "THINCDIALOG_TRACEBACK"
EXIT_CODES = {
    0: "success, also with warnings",
    1: "error in the config, the data, the model or the output",
    2: "error in the command line",
    75: "stopped by SIGTERM or SIGHUP; continue with train --resume",
    129: "stopped by SIGHUP (the terminal was closed), without a checkpoint",
    INTERRUPTED: "interrupted by Ctrl-C",
    143: "stopped by SIGTERM, without a checkpoint",
}


class Command(NamedTuple):
    """Describe a command in one line; its file is named after it."""

    about: str
    aliases: Tuple[str, ...] = ()
    takes_overrides: bool = True


COMMANDS: Dict[str, Command] = {
    "train": Command("Train, evaluate and save a model"),
    "build": Command("Pre-tokenize data into an on-disk store, for data larger than memory"),
    "evaluate": Command("Evaluate a saved model on a split of its data", ("eval",)),
    "predict": Command("Write a model's replies or classes for the texts in a file"),
    "compare": Command("Test whether one of two models is better"),
    "display-data": Command("Show examples of a task", ("dd",)),
    "display-model": Command("Show a saved model's replies to examples of its data", ("dm",)),
    "find-lr": Command("Suggest a learning rate after a short training run"),
    "plot": Command("Plot the learning curves of training runs", (), False),
    "results": Command("List training runs with their scores in a table", (), False),
    "convert": Command("Convert a data file to another format", (), False),
    "distill": Command("Make a table of word vectors from a published encoder", (), False),
    "sweep": Command("Search hyperparameters: train with many settings and compare the runs"),
    "cross-validate": Command("Train and test on folds of the training data"),
    "chat": Command("Talk to a saved model", ("interactive", "i")),
    "serve": Command("Serve saved models over HTTP, with a chat page"),
    "chats": Command("Turn a chat log into training data, one line per conversation", (), False),
    "init config": Command("Copy a shipped config, to start from", (), False),
    "init fill-config": Command("Add every default setting to a config"),
    "debug config": Command("Check a config and list all problems"),
    "debug data": Command("Analyse the data and report likely problems"),
    "debug overfit": Command("Check whether a model can memorise one batch"),
    "debug profile": Command("Show how much time each layer takes in training"),
    "debug diff-config": Command("Show how a config differs from the defaults or another config"),
    "find-function": Command("Show a registered function: its arguments, file and line", (), False),
    "completion": Command("Print a completion script for your shell", (), False),
    "info": Command("Show versions, or describe a saved model", (), False),
}
# Options of ParlAI, and their replacements.
PARLAIS = {
    **dict.fromkeys(("t", "task", "dt", "datatype"), "a section [tasks.NAME] of the config"),
    **dict.fromkeys(("m", "model"), "the section [agent] of the config"),
    **dict.fromkeys(("mf", "model_file"), "--output FOLDER"),
    **dict.fromkeys(("df", "dict_file"), "the section [tokenizer] of the config"),
    **dict.fromkeys(("bs", "batchsize"), "--world.batcher.size N"),
    **dict.fromkeys(("nt", "numthreads"), "the section [runner] of the config"),
    **dict.fromkeys(("eps", "num_epochs"), "--training.max_epochs N"),
    **dict.fromkeys(("lr", "learningrate"), "--training.optimizer.learn_rate X"),
}
# Names of commands, and their aliases, to names.
NAMES = {alias: name for name in COMMANDS for alias in (name, *COMMANDS[name].aliases)}


def main(arguments: Optional[List[str]] = None) -> int:
    """Run a command line.

    arguments (Optional[List[str]]): The words after the program's name; those of sys.argv if None.
    RETURNS (int): The exit code; see ``EXIT_CODES``.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # Text that the terminal cannot show is not an error.
            stream.reconfigure(errors="backslashreplace")
    shows_traceback = "--traceback" in arguments or os.environ.get(TRACEBACK, "0") not in ("", "0")
    try:
        code = _run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt as interrupt:  # Training names the folder that was saved last.
        messages.warn(f"Interrupted; saved {interrupt}" if str(interrupt) else "Interrupted")
        return getattr(interrupt, "exit_code", INTERRUPTED)
    except BrokenPipeError:  # As in "... | head", whose reader has closed the pipe.
        _drop_output()
        return 0
    except (OSError, DialogError) as error:
        if shows_traceback:
            traceback.print_exc()
        # Errors of files have messages of their own; other OSErrors come from stdout or custom
        # code.
        text = _os_error_line(error) if isinstance(error, OSError) else str(error)
        if isinstance(error, WorkerError) and not shows_traceback:
            text = error.brief
        messages.fail(text)
        if isinstance(error, OSError) and error.filename is None:
            _drop_output()
        if isinstance(error, ConfigError) and not shows_traceback:
            messages.info("Nothing was written.")
        return getattr(error, "exit_code", DialogError.exit_code)
    except BaseException as error:
        from ..contract import place_in

        if isinstance(error, SystemExit) and not place_in(error):  # From argparse.
            return error.code if isinstance(error.code, int) else 2
        text = _code_error_line(error)
        if not text or shows_traceback:
            traceback.print_exc()
        if text:
            messages.fail(text)
        return DialogError.exit_code


def _code_error_line(error: BaseException) -> str:
    """Describe an error in custom code, a lack of memory, or any other error while custom code is
    in use. Return "" if no custom code is in use, because the error is then a defect of this
    package."""
    from ..contract import CODE_PREFIX, code_error_line, error_line

    text = code_error_line(error)
    if not text and isinstance(error, MemoryError):
        return _memory_error_line(error)
    files = {m.__file__ for name, m in sys.modules.items() if name.startswith(CODE_PREFIX)}
    if text or not files:
        return text
    last = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{error_line(error)} ({last.filename}:{last.lineno}, --traceback shows all of it)"
    names = ", ".join(sorted({os.path.basename(str(name)) for name in files}))
    return f"{what}. The error was not raised in {names}, but a value from there may be the cause."


def _os_error_line(error: OSError) -> str:
    """Describe an OSError. Errors of stdout have no file name, and errors of custom code may have
    none."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        what = f"{error.filename}  cannot be read or written"
    elif error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"the output cannot be written: {reason}"
    else:
        what = "reading or writing failed"
    from ..contract import place_in

    return f"{what}: {reason} ({place_in(error) or '--traceback shows where'})"


def _memory_error_line(error: MemoryError) -> str:
    reason = str(error) or "nothing is left"
    hint = "lower a setting that needs memory: a batch size, a width, or the number of candidates"
    return f"there is not enough memory: {reason[:1].lower()}{reason[1:]}; {hint}"


def _drop_output() -> None:
    """Discard the remaining output to stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: List[str]) -> int:
    if "_ARGCOMPLETE" in os.environ:  # A shell asks for completions.
        complete()
    rest, overrides = split_overrides(words)
    if not rest or rest[0] in ("-h", "--help"):
        print(_overview(list(COMMANDS)))
        return 0 if rest else 2
    if rest[0] == "--version":
        print(__version__)
        return 0
    name, rest = _find_command(rest)
    parser = make_parser(name)
    parsed, unknown = parser.parse_known_args(rest)
    if unknown:
        hint = _hint(unknown[0], parser, COMMANDS[name].takes_overrides)
        parser.error(f"unrecognized argument {unknown[0]}{hint}")
    if COMMANDS[name].takes_overrides:
        parsed.overrides = overrides
    elif overrides:
        parser.error(f"--{next(iter(overrides))}: this command does not accept settings")
    from .writing import check_outputs  # Not needed for --help and --version.

    check_outputs(parsed, [each.dest for each in parser._actions if getattr(each, "writes", False)])
    with allowing(getattr(parsed, "allow_pickle", False)):
        return _module(name).run(parsed) or 0


def make_parser(name: str) -> argparse.ArgumentParser:
    """Make the parser of a command's options; overrides are removed from the command line before.

    name (str): A key of ``COMMANDS``.
    """
    command, module = COMMANDS[name], _module(name)
    lines = ["examples:", *(f"  python -m thincdialog {each}" for each in module.EXAMPLES)]
    if command.takes_overrides:
        lines[:0] = ["You can change any setting of the config: --section.key VALUE", ""]
    parser = argparse.ArgumentParser(
        prog=f"python -m thincdialog {name}",
        description=f"{command.about}.{getattr(module, 'ABOUT', '')}",
        epilog="\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    declare(parser, module.ARGUMENTS)
    if command.takes_overrides:
        declare(parser, COMMON)
    about = f"show the traceback of an error (also: {TRACEBACK}=1)"
    parser.add_argument("--traceback", action="store_true", help=about)
    return parser


def _module(name: str) -> Any:
    module = name.replace(" ", "_").replace("-", "_")
    return importlib.import_module(f"thincdialog.cli.{module}")


def _find_command(words: List[str]) -> Tuple[str, List[str]]:
    """Return the command's name, and the words after it."""
    for n_words in (1, 2):
        name = " ".join(words[:n_words]).replace("_", "-")
        if name in NAMES:
            return NAMES[name], words[n_words:]
    first = words[0]
    if inside := [name for name in COMMANDS if name.startswith(f"{first} ")]:
        if "-h" in words or "--help" in words:
            print(_overview(inside))
            raise SystemExit(0)
        raise UsageError(f"'{first}' needs one of: {', '.join(n.split()[1] for n in inside)}")
    # The cutoff keeps "export" from matching "plot".
    close = closest(first, NAMES, cutoff=0.65)
    hint = f"did you mean '{close}'?" if close else "see python -m thincdialog --help"
    raise UsageError(f"there is no command '{first}' - {hint}")


def _overview(names: List[str]) -> str:
    lines = ["usage: python -m thincdialog COMMAND ...", "", "commands:"]
    for name in names:
        titles = ", ".join([name, *COMMANDS[name].aliases])
        lines.append(f"  {titles:<26}{COMMANDS[name].about}")
    lines += ["", "Every command has its own help: python -m thincdialog train --help"]
    if len(names) == len(COMMANDS):
        lines.append(
            "Results go to stdout, progress and notes to stderr. With --json, stdout is JSON."
        )
        lines += ["", "exit codes:", *(f"  {code:<4}{what}" for code, what in EXIT_CODES.items())]
    return "\n".join(lines)


def _hint(word: str, parser: argparse.ArgumentParser, takes_settings: bool) -> str:
    """Suggest the option that an unknown argument probably means."""
    if not word.startswith("-"):
        return " - give data as --paths.train FILE or --paths.test FILE" * takes_settings
    option = word.split("=")[0]
    name = option.lstrip("-").replace("-", "_")
    settings = {setting: setting.rpartition(".")[2] for setting in settings_in(DEFAULTS)}
    for setting, key in settings.items():
        if key == name:
            return f" - did you mean --{setting}?"
    options = [option for action in parser._actions for option in action.option_strings]
    if close := closest(option, options):
        return f" - did you mean {close}?"
    if place := PARLAIS.get(name):
        start = "python -m thincdialog init config --from ranker my.cfg"
        return f" - this option of ParlAI is {place} here; copy a config to start from: {start}"
    for setting, key in settings.items():
        if key.endswith(f"_{name}"):
            return f" - did you mean --{setting}?"
    return ""
