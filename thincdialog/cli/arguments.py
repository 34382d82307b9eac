"""Arguments that several commands have."""

import argparse
from typing import Any, Callable, Dict, Iterable, Tuple

from .json_output import add_json


def count(text: str) -> int:
    """A whole number, 0 or more."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"should be 0 or more, got {number}")
    return number


def positive(text: str) -> int:
    """A whole number, 1 or more."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"should be 1 or more, got {number}")
    return number


def add_config(parser: argparse.ArgumentParser) -> None:
    """CONFIG, a config file."""
    parser.add_argument("config", metavar="CONFIG", help="config file, such as quickstart.cfg")


def add_model(parser: argparse.ArgumentParser) -> None:
    """MODEL, the folder of a saved model."""
    parser.add_argument("model", metavar="MODEL", help="folder of a saved model")


def add_code(parser: argparse.ArgumentParser) -> None:
    """--code FILE."""
    parser.add_argument(
        "-c", "--code", metavar="FILE", help="Python file that registers functions of yours"
    )


def add_gpu(parser: argparse.ArgumentParser) -> None:
    """--gpu-id N."""
    parser.add_argument(
        "-g", "--gpu-id", metavar="N", type=int, help="number of the GPU, -1 for the CPU"
    )


def add_split(parser: argparse.ArgumentParser, default: str = "test") -> None:
    """--split NAME."""
    parser.add_argument(
        "--split",
        choices=("train", "dev", "test"),
        default=default,
        help=f"which data, {default} if not given",
    )


def add_trial(parser: argparse.ArgumentParser, about: str, steps: str, default: int) -> None:
    """What all commands have that train for some steps and keep nothing.

    about (str): The second part of the description.
    steps (str): What ``--steps`` counts.
    default (int): Their number.
    """
    parser.description = f"{parser.description or ''}{about}"
    add_config(parser)
    parser.add_argument("--steps", metavar="N", type=int, default=default,
                        help=f"{steps}, {default} if not given")  # fmt: skip
    add_json(parser, "all that was found")
    add_code(parser)
    add_gpu(parser)


def add_resamples(parser: argparse.ArgumentParser, kind: Callable[[str], int] = count) -> None:
    """--resamples N.

    kind (Callable): ``count`` or ``positive``.
    """
    parser.add_argument(
        "--resamples",
        metavar="N",
        type=kind,
        default=1000,
        help="resamples of the bootstrap, 1,000 if not given",
    )


def suggest(action: argparse.Action, find: Callable[[], Iterable[str]]) -> None:
    """Offer words for completion where others may stand as well, or where looking them up
    takes too long for each start.

    action (argparse.Action): What ``add_argument`` returned.
    find (Callable): Gives the words; called when a completion script is written.
    """
    action.suggest = find  # type: ignore[attr-defined]


def suggested(action: argparse.Action) -> Tuple[str, ...]:
    """The words that can stand as an argument, as far as they are known."""
    find = getattr(action, "suggest", None)
    return tuple(map(str, action.choices or (find() if find is not None else ())))


def with_gpu(overrides: Dict[str, str], gpu_id: Any) -> Dict[str, Any]:
    """The overrides, and what ``--gpu-id`` says."""
    return dict(overrides) if gpu_id is None else {**overrides, "system.gpu_id": gpu_id}
