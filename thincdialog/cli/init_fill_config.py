"""``init fill-config``: write out all defaults of a config."""

import argparse
import difflib
import sys
from typing import Dict

from .arguments import add_code, add_config
from .output import Messages, coloured
from .writing import write_text

EXAMPLES = [
    "init fill-config base.cfg full.cfg",
    "init fill-config base.cfg --diff",
    "init fill-config base.cfg - --training.max_epochs 3",
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_config(parser)
    parser.add_argument("output", metavar="OUT", nargs="?", help="file to write; - for stdout")
    parser.add_argument("-D", "--diff", action="store_true", help="show what is added")
    parser.add_argument("-F", "--force", action="store_true", help="overwrite OUT")
    add_code(parser)


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Write the complete config, or what is added to it."""
    from ..config import load_code, load_config, write_config

    load_code(arguments.code)
    checked = load_config(arguments.config, overrides)
    text = write_config(checked.config, checked.given.source)
    if arguments.diff:
        before = write_config(checked.given.written, checked.given.source)
        for line in difflib.ndiff(before.splitlines(), text.splitlines()):
            code = {"+": 32, "-": 31}.get(line[0])
            if line[0] != "?":
                print(coloured(line, code, sys.stdout) if code else line)
    if arguments.output or not arguments.diff:
        write_text(arguments.output or "-", text, arguments.force)
    if arguments.output not in (None, "-"):
        Messages(sys.stderr).good(f"Wrote {arguments.output}")
    return 0
