"""``init fill-config``: write a config with all its defaults."""

import argparse
import difflib

from .arguments import CONFIG, argument
from .output import print_difference, write_text

EXAMPLES = [
    "init fill-config quickstart.cfg full.cfg",
    "init fill-config quickstart.cfg --diff",
    "init fill-config quickstart.cfg - --training.max_epochs 3",
]

ARGUMENTS = [
    CONFIG,
    argument("[OUT]", "output file (default: stdout)"),
    argument("-D --diff", "show the added settings"),
    argument("-F --force", "overwrite OUT"),
]


def run(arguments: argparse.Namespace) -> None:
    """Write the complete config, or show the added settings."""
    from ..config import load_code, load_config, write_config

    load_code(arguments.code)
    checked = load_config(arguments.config, arguments.overrides)
    text = write_config(checked.config, checked.given.source)
    if arguments.diff:
        before = write_config(checked.given.written, checked.given.source)
        for line in difflib.ndiff(before.splitlines(), text.splitlines()):
            if line[0] != "?":
                print_difference(line)
    if arguments.out or not arguments.diff:
        write_text(arguments.out or "-", text, arguments.force)
