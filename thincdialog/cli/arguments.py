"""Arguments of commands, written as in the help text."""

import argparse
import shlex
from contextlib import suppress
from math import inf
from typing import Any, Callable, Dict, Iterable, List, Optional

from ..errors import DialogError
from ..messages import SPLITS


class UsageError(DialogError):
    """The command line cannot be understood."""

    exit_code = 2


# A function that adds an argument to a parser, or to a group in it.
Argument = Callable[[Any], None]


def argument(
    usage: str,
    about: str,
    kind: Optional[Callable[[str], Any]] = None,
    default: Any = None,
    suggest: Optional[Callable[[], Iterable[str]]] = None,
    **settings: Any,
) -> Argument:
    """Make an argument from its usage and help text.

        "CONFIG"   "[MODEL]"   "RUN..."   "-F --force"   "-o --output FOLDER"   "--json [>FILE]"

    usage (str): Names and value. A value in brackets is optional, a value with dots can be
        repeated, and one with ">" is a file that the command writes (see ``check_outputs``); an
        option without value or choices is a flag.
    about (str): The help text; the default value is added to it.
    kind (Optional[Callable[[str], Any]]): Parses the value; if None, the value stays a string.
    default (Any): Value if the argument is missing.
    suggest (Optional[Callable[[], Iterable[str]]]): Returns completions for a shell.
    **settings (Any): More arguments of ``add_argument``.
    """
    names = [word for word in usage.split() if word.startswith("-")]
    value = usage.removeprefix(" ".join(names)).strip()
    writes, value = ">" in value, value.replace(">", "")
    name = value.strip("[].")
    if default not in (None, "", []) and "(default:" not in about:
        about += f" (default: {default})"
    if not value and "choices" not in settings:
        settings["action"] = "store_true"
    else:
        settings = {"type": kind, "default": default, **settings}
    if value and "choices" not in settings:
        settings["metavar"] = name
    if not names:
        settings.setdefault("dest", name.lower())
    if value != name:
        settings["nargs"] = "?" if value.startswith("[") else "+"

    def add(parser: Any) -> None:
        action = parser.add_argument(*names, help=about, **settings)
        action.writes = writes
        if suggest is not None:
            action.completer = lambda **_: suggest()

    return add


def declare(parser: Any, arguments: Iterable[Any]) -> None:
    """Add arguments to a parser.

    parser (ArgumentParser): The parser, or a group in it.
    arguments (Iterable[Union[Argument, List[Argument]]]): Arguments in the order of the help; the
        arguments in a list exclude each other.
    """
    for each in arguments:
        if callable(each):
            each(parser)
        else:
            declare(parser.add_mutually_exclusive_group(), each)


def number(kind: type, least: int, most: float = inf) -> Callable[[str], Any]:
    """Return a function that parses a number from ``least`` to ``most``.

    kind (type): int or float.
    """

    def parse(text: str) -> Any:
        with suppress(ValueError):
            if least <= kind(text) <= most:
                return kind(text)
        what = "an integer" if kind is int else "a number"
        limits = f", {least} or more" if most == inf else f" from {least} to {most}"
        raise argparse.ArgumentTypeError(f"should be {what}{limits}, got {text}")

    return parse


count, positive, share = number(int, 0), number(int, 1), number(float, 0, 1)


def listed(text: str) -> List[str]:
    """Split a list at its commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def letter(text: str) -> str:
    """Parse a single character; a tab may be written as ``\\t``."""
    text = "\t" if text == "\\t" else text
    if len(text) != 1:
        raise argparse.ArgumentTypeError(f"should be a single character, got '{text}'")
    return text


CONFIG = argument("CONFIG", "config file, for example quickstart.cfg")
MODEL = argument("MODEL", "folder of a saved model, or of a run (its best model)")
CODE = argument(
    "-c --code FILE",
    "Python file with your registered functions; repeat it for several files",
    action="append",
)
# Arguments of every command that takes overrides, in addition to its own.
COMMON = [
    CODE,
    argument(
        "--allow-pickle", "allow loaders of ml_datasets to unpickle files, which can run any code"
    ),
]
GPU = argument("-g --gpu-id N", "index of the GPU, -1 for the CPU (default: [system] gpu_id)", int)
MAX_LEN = argument("--max-len N", "characters to show of each text, 0 for all", count, 300)
FORMATS = "text, jsonl, csv, tsv, parlai, fbdialog, babi"


def with_layouts(formats: str) -> Iterable[str]:
    """Return the names of some formats and of all bundled layouts, as completions for a shell."""
    from ..formats.layout_file import shipped_layouts

    return (*formats.split(", "), *shipped_layouts())


def input_format(default: str) -> Argument:
    """Make --format, the format of an input file; ``default`` describes its default."""
    about = f"{FORMATS}; or a layout of thincdialog.JSONLayout.v1, such as messages, sharegpt or "
    return argument(
        "--format NAME",
        f"{about}my.yml (default: {default})",
        suggest=lambda: with_layouts(FORMATS),
    )


ENCODING = argument("--encoding NAME", "encoding of the input, such as cp1252 (default: UTF-8)")
# How to read a text file.
INPUT_TEXT = [
    argument("--columns A,B", "column names of a table without a header row", listed),
    argument(
        "--delimiter X", "separator of a CSV file (default: detected in its first line)", letter
    ),
    ENCODING,
]
THRESHOLD = argument(
    "--threshold P",
    "reject the best reply if it is less probable than P (default: the model's own threshold)",
    share,
)
LOG = argument("--log FILE", "append conversations to FILE as JSON lines; inform your users")
FORCE = argument("--force", "overwrite existing files")
JSONL = argument("--jsonl", "print JSON lines, one object per example")


def split(default: str) -> Argument:
    """Make --split, which takes one of the three splits."""
    return argument("--split", "split of the data to use", default=default, choices=SPLITS)


def resamples(kind: Callable[[str], int]) -> Argument:
    """Make --resamples N; ``kind`` is ``count`` or ``positive``."""
    return argument("--resamples N", "number of bootstrap resamples (default: 1,000)", kind, 1000)


def json_flag(what: str) -> Argument:
    """Make --json, which prints ``what``."""
    return argument("--json", f"print {what} as JSON")


def json_file(what: str) -> Argument:
    """Make --json [FILE], which writes ``what``; the file is "-" if no name is given."""
    about = f"write {what} as JSON to FILE (default: stdout)"
    return argument("--json [>FILE]", about, const="-")


def trial(steps: str, default: int) -> List[Argument]:
    """Return the arguments of all commands that train for some steps without saving anything.

    steps (str): Help text of ``--steps``.
    default (int): Default number of steps.
    """
    return [CONFIG, argument("--steps N", steps, int, default), json_flag("the results"), GPU]


def command_line(*words: str) -> str:
    """Return a command that users can paste into a shell.

    words (str): The words after the program's name.
    """
    return f"python -m thincdialog {shlex.join(words)}"


def with_code(arguments: argparse.Namespace) -> List[str]:
    """Return the words that pass the ``--code`` files of one command to another command."""
    return [word for file in arguments.code or () for word in ("--code", file)]


def named(arguments: argparse.Namespace, *names: str) -> Dict[str, Any]:
    """Return arguments by name, for a function whose parameters have the same names."""
    return {name: getattr(arguments, name) for name in names}


def common(arguments: argparse.Namespace, *names: str) -> Dict[str, Any]:
    """Return arguments as ``named`` does, and ``code`` and ``overrides`` (with ``--gpu-id``)."""
    overrides = dict(arguments.overrides)
    if getattr(arguments, "gpu_id", None) is not None:
        overrides["system.gpu_id"] = arguments.gpu_id
    return {"overrides": overrides, **named(arguments, "code", *names)}
