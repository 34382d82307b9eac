"""``debug diff-config``: show what sets a config apart from the defaults or from another."""

import argparse
import sys
from collections import Counter
from typing import Any, Dict, Iterator, List, Tuple

from .arguments import add_code
from .json_output import add_json, print_json
from .output import Messages, coloured

EXAMPLES = [
    "debug diff-config ranker.cfg",
    "debug diff-config ranker.cfg --compare-to intent.cfg",
    "debug diff-config output/new/model-best --compare-to output/old/model-best --json",
    "debug diff-config ranker.cfg --full --training.max_epochs 3",
]

ABOUT = """
Compares complete configs, as `init fill-config` writes them: a setting that is not
written counts with its default. Lines with + are the config's, lines with - are those of
what it is compared to: the defaults, which are also those of the functions that the
config names, or another config."""

# Sign and colour of a line.
SIGNS = {"same": (" ", 0), "added": ("+", 32), "removed": ("-", 31)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.description = f"{parser.description or ''}{ABOUT}"
    parser.add_argument("config", metavar="CONFIG", help="config file, or a saved model's folder")
    parser.add_argument(
        "--compare-to", metavar="OTHER", help="config or model; the defaults if not given"
    )
    parser.add_argument("--full", action="store_true", help="show unchanged lines, too")
    add_json(parser, "the differences")
    add_code(parser)


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Compare, and show the lines that differ."""
    from ..api import diff_config

    found = diff_config(
        arguments.config, arguments.compare_to, overrides=overrides, code=arguments.code
    )
    shown = [d for d in found if arguments.full or d.kind != "same"]
    if arguments.json:
        print_json([difference._asdict() for difference in shown])
        return 0
    for sign, text in _lines(found, arguments.full):
        code = dict(SIGNS.values())[sign]
        line = f"{sign} {text}".rstrip()
        print(coloured(line, code, sys.stdout) if code else line)
    counts = Counter(difference.kind for difference in found)
    what = arguments.compare_to or "the defaults"
    if counts.keys() <= {"same"}:
        Messages(sys.stderr).good(f"{arguments.config} does not differ from {what}")
    else:
        parts = [f"{counts[k]} {k}" for k in ("changed", "added", "removed") if counts[k]]
        Messages(sys.stderr).info(f"Compared to {what}: {', '.join(parts)}")
    return 0


def _lines(found: List[Any], full: bool) -> Iterator[Tuple[str, str]]:
    """Sign and text of each line to show."""
    sections: Dict[str, List[Any]] = {}
    for difference in found:
        sections.setdefault(difference.section, []).append(difference)
    is_first = True
    for name, differences in sections.items():
        shown = [d for d in differences if full or d.kind != "same"]
        if not shown:
            continue
        if not is_first:
            yield " ", ""
        is_first = False
        yield _sign_of_section(differences), f"[{name}]"
        for difference in shown:
            if difference.kind in ("changed", "removed"):
                yield "-", _entry(difference.key, difference.old)
            if difference.kind in ("changed", "added"):
                yield "+", _entry(difference.key, difference.new)
            if difference.kind == "same":
                yield " ", _entry(difference.key, difference.new)


def _sign_of_section(differences: List[Any]) -> str:
    """A section is new, or gone, if all of it is, or what builds it."""
    kinds = {difference.kind for difference in differences}
    builder = {d.kind for d in differences if d.key.startswith("@")}
    for kind in ("added", "removed"):
        if kinds == {kind} or builder == {kind}:
            return SIGNS[kind][0]
    return " "


def _entry(key: str, value: str) -> str:
    return f"{key} = {value}".replace("\n", "\n      ")
