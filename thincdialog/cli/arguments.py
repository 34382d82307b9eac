"""Arguments of commands, each written as its help shows it."""

import argparse
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional

SPLITS = ("train", "dev", "test")


class Argument(NamedTuple):
    """An argument of a command.

    names (List[str]): Those of an option; none of an argument by position.
    settings (Dict[str, Any]): What else ``add_argument`` takes.
    suggest (Optional[Callable[[], Iterable[str]]]): Gives words that a shell may offer.
    """

    names: List[str]
    settings: Dict[str, Any]
    suggest: Optional[Callable[[], Iterable[str]]]


def argument(
    usage: str,
    about: str,
    kind: Optional[Callable[[str], Any]] = None,
    default: Any = None,
    suggest: Optional[Callable[[], Iterable[str]]] = None,
    **settings: Any,
) -> Argument:
    """An argument, from what its help shows.

        "CONFIG"   "[MODEL]"   "RUN..."   "-F --force"   "-o --output FOLDER"   "--json [FILE]"

    usage (str): Names and value. A value in brackets may be missing, one with dots stands
        several times; an option without value or choices is a flag.
    about (str): What the help says of it.
    kind (Optional[Callable[[str], Any]]): Reads the value; a text if None.
    default (Any): What it is if it is not given.
    suggest (Optional[Callable[[], Iterable[str]]]): Gives words that a shell may offer;
        called when a shell asks.
    settings: More settings of ``add_argument``.
    """
    names = [word for word in usage.split() if word.startswith("-")]
    value = usage.removeprefix(" ".join(names)).strip()
    settings["help"] = about
    if not value and "choices" not in settings:
        return Argument(names, {**settings, "action": "store_true"}, suggest)
    if "choices" not in settings:
        settings["metavar"] = value.strip("[].")
    if not names:
        settings.setdefault("dest", value.strip("[].").lower())
    if value.startswith("[") or value.endswith("..."):
        settings["nargs"] = "?" if value.startswith("[") else "+"
    return Argument(names, {**settings, "type": kind, "default": default}, suggest)


def declare(parser: Any, arguments: Iterable[Any]) -> None:
    """Give a parser its arguments.

    parser (ArgumentParser): The parser, or a group in it.
    arguments (Iterable[Union[Argument, List[Argument]]]): In the order of the help; of
        those in a list, only one can be given.
    """
    for each in arguments:
        if isinstance(each, Argument):
            action = parser.add_argument(*each.names, **each.settings)
            if each.suggest is not None:
                action.completer = lambda suggest=each.suggest, **_: suggest()
        else:
            declare(parser.add_mutually_exclusive_group(), each)


def count(text: str, least: int = 0) -> int:
    """A whole number, 0 or more."""
    number = int(text)
    if number < least:
        raise argparse.ArgumentTypeError(f"should be {least} or more, got {number}")
    return number


def positive(text: str) -> int:
    """A whole number, 1 or more."""
    return count(text, 1)


CONFIG = argument("CONFIG", "config file, such as quickstart.cfg")
MODEL = argument("MODEL", "folder of a saved model")
CODE = argument("-c --code FILE", "Python file that registers functions of yours")
GPU = argument("-g --gpu-id N", "number of the GPU, -1 for the CPU", int)
MAX_LEN = argument("--max-len N", "letters of a text to show; 0 for all", count, 300)
JSONL = argument("--jsonl", "one JSON object on a line")


def split(default: str) -> Argument:
    """--split, one of the three."""
    about = f"which data, {default} if not given"
    return argument("--split", about, default=default, choices=SPLITS)


def resamples(kind: Callable[[str], int]) -> Argument:
    """--resamples N; ``kind`` is ``count`` or ``positive``."""
    return argument("--resamples N", "resamples of the bootstrap, 1,000 if not given", kind, 1000)


def json_flag(what: str) -> Argument:
    """--json; ``what`` is printed then."""
    return argument("--json", f"print {what} as JSON")


def json_file(what: str) -> Argument:
    """--json [FILE], "-" without a name; ``what`` is written then."""
    return argument("--json [FILE]", f"write {what} to a file, or to stdout", const="-")


def trial(steps: str, default: int) -> List[Argument]:
    """What all commands have that train for some steps and keep nothing.

    steps (str): What ``--steps`` counts.
    default (int): Their number.
    """
    n_steps = argument("--steps N", f"{steps}, {default} if not given", int, default)
    return [CONFIG, n_steps, json_flag("all that was found"), CODE, GPU]


def common(arguments: argparse.Namespace) -> Dict[str, Any]:
    """What most of the called functions take: ``overrides``, with what ``--gpu-id`` says, and
    ``code``."""
    overrides = dict(arguments.overrides)
    if getattr(arguments, "gpu_id", None) is not None:
        overrides["system.gpu_id"] = arguments.gpu_id
    return {"overrides": overrides, "code": arguments.code}
