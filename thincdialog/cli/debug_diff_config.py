"""``debug diff-config``: show how a config differs from the defaults or from another config."""

import argparse
from collections import Counter
from typing import Any, Iterator, List, Tuple

from .arguments import argument, common, json_flag
from .output import coloured, messages, print_json

EXAMPLES = [
    "debug diff-config ranker.cfg",
    "debug diff-config ranker.cfg --compare-to intent.cfg",
    "debug diff-config output/small/model-best --compare-to output/quickstart/model-best --json",
    "debug diff-config ranker.cfg --full --training.max_epochs 3",
]

ABOUT = """
Compares complete configs, as `init fill-config` writes them, so a missing setting has its default
value. Lines with + are from CONFIG. Lines with - are from OTHER, or from the defaults."""

# Sign and colour of a line.
SIGNS = {"same": (" ", 0), "added": ("+", 32), "removed": ("-", 31)}

ARGUMENTS = [
    argument("CONFIG", "config file, or folder of a saved model"),
    argument(
        "--compare-to OTHER", "config or model to compare with (default: the default settings)"
    ),
    argument("--full", "also show unchanged lines"),
    json_flag("the differences"),
]


def run(arguments: argparse.Namespace) -> None:
    """Compare, and show the lines that differ."""
    from ..api import diff_config

    found = diff_config(arguments.config, arguments.compare_to, **common(arguments))
    shown = [d for d in found if arguments.full or d.kind != "same"]
    if arguments.json:
        print_json([difference._asdict() for difference in shown])
        return
    for sign, text in _lines(found, shown):
        print(coloured(f"{sign} {text}".rstrip(), dict(SIGNS.values())[sign]))
    counts = Counter(difference.kind for difference in found)
    what = arguments.compare_to or "the defaults"
    if counts.keys() <= {"same"}:
        messages.good(f"{arguments.config} does not differ from {what}")
    else:
        parts = [f"{counts[k]} {k}" for k in ("changed", "added", "removed") if counts[k]]
        messages.info(f"Compared to {what}: {', '.join(parts)}")


def _lines(found: List[Any], shown: List[Any]) -> Iterator[Tuple[str, str]]:
    """Yield the sign and text of each line to show."""
    for number, section in enumerate(dict.fromkeys(each.section for each in shown)):
        if number:
            yield " ", ""
        yield _sign_of_section([each for each in found if each.section == section]), f"[{section}]"
        for each in shown:
            if each.section == section and each.kind in ("changed", "removed"):
                yield "-", _entry(each.key, each.old)
            if each.section == section and each.kind != "removed":
                yield " " if each.kind == "same" else "+", _entry(each.key, each.new)


def _sign_of_section(differences: List[Any]) -> str:
    """Return the sign of a section, which is added or removed if all its settings are, or its
    function is."""
    kinds = {difference.kind for difference in differences}
    builder = {d.kind for d in differences if d.key.startswith("@")}
    for kind in ("added", "removed"):
        if kinds == {kind} or builder == {kind}:
            return SIGNS[kind][0]
    return " "


def _entry(key: str, value: str) -> str:
    return f"{key} = {value}".replace("\n", "\n      ")
