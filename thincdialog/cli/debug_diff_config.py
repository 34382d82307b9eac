"""``debug diff-config``: show how a config differs from the defaults or from another config."""

import argparse
from collections import Counter
from typing import Any, Iterator, List

from .arguments import argument, common, json_flag
from .output import messages, print_difference, print_json

EXAMPLES = [
    "debug diff-config ranker.cfg",
    "debug diff-config ranker.cfg --compare-to intent.cfg",
    "debug diff-config output/small/model-best --compare-to output/quickstart/model-best --json",
    "debug diff-config ranker.cfg --training.max_epochs 3",
]

ABOUT = """
Compares complete configs, as `init fill-config` writes them, so a missing setting has its default
value. Lines with + are from CONFIG. Lines with - are from OTHER, or from the defaults."""

ARGUMENTS = [
    argument("CONFIG", "config file, or folder of a saved model"),
    argument(
        "--compare-to OTHER", "config or model to compare with (default: the default settings)"
    ),
    json_flag("the differences"),
]


def run(arguments: argparse.Namespace) -> None:
    """Compare, and show the lines that differ."""
    from ..api import diff_config

    found = diff_config(arguments.config, arguments.compare_to, **common(arguments))
    if arguments.json:
        print_json([each._asdict() for each in found if each.kind != "same"])
        return
    for line in _lines(found):
        print_difference(line.rstrip())
    counts = Counter(difference.kind for difference in found)
    what = arguments.compare_to or "the defaults"
    if counts.keys() <= {"same"}:
        messages.good(f"{arguments.config} does not differ from {what}")
    else:
        parts = [f"{counts[k]} {k}" for k in ("changed", "added", "removed") if counts[k]]
        messages.info(f"Compared to {what}: {', '.join(parts)}")


def _lines(found: List[Any]) -> Iterator[str]:
    """Yield the lines to show, which begin with a sign."""
    for number, section in enumerate(dict.fromkeys(d.section for d in found if d.kind != "same")):
        differences = [each for each in found if each.section == section]
        if number:
            yield ""
        yield f"{_sign_of_section(differences)} [{section}]"
        for each in differences:
            if each.kind in ("changed", "removed"):
                yield f"- {_entry(each.key, each.old)}"
            if each.kind in ("changed", "added"):
                yield f"+ {_entry(each.key, each.new)}"


def _sign_of_section(differences: List[Any]) -> str:
    """Return the sign of a section, which is added or removed if all its settings are, or its
    function is."""
    kinds = {difference.kind for difference in differences}
    builder = {d.kind for d in differences if d.key.startswith("@")}
    for kind, sign in (("added", "+"), ("removed", "-")):
        if kinds == {kind} or builder == {kind}:
            return sign
    return " "


def _entry(key: str, value: str) -> str:
    return f"{key} = {value}".replace("\n", "\n      ")
