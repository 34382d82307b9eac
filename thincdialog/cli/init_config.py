"""``init config``: copy a config that comes along, to start from."""

import argparse
import sys
from typing import Dict, Iterable

from .arguments import suggest
from .errors import UsageError
from .json_output import add_json, print_json
from .output import Messages, table
from .writing import write_text

EXAMPLES = [
    "init config --list",
    "init config quickstart.cfg",
    "init config --from ranker my_ranker.cfg",
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    name = parser.add_argument(
        "--from", dest="name", metavar="NAME", default="quickstart", help="which config"
    )
    suggest(name, _names)
    parser.add_argument("--list", action="store_true", help="list the configs that come along")
    add_json(parser, "the list")
    parser.add_argument("-F", "--force", action="store_true", help="overwrite OUT")
    parser.add_argument("output", metavar="OUT", nargs="?", help="file to write; - for stdout")


def _names() -> Iterable[str]:
    from ..config import shipped_configs

    return shipped_configs()


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Copy the config, or list those there are."""
    from ..config import find_shipped, shipped_configs

    if arguments.list:
        rows = [["name", "what it is"]]
        for name, path in shipped_configs().items():
            first = path.read_text(encoding="utf8").split("\n", 1)[0]
            rows.append([name, first.lstrip("# ")])
        if arguments.json:
            print_json([dict(zip(("name", "about"), row)) for row in rows[1:]])
        else:
            print(table(rows, n_left=2))
        return 0
    if arguments.output is None:
        raise UsageError("init config needs OUT, the file to write (- for stdout), or --list")
    text = find_shipped(arguments.name).read_text(encoding="utf8")
    write_text(arguments.output, text, arguments.force)
    if arguments.output != "-":
        messages = Messages(sys.stderr)
        messages.good(f"Wrote {arguments.output}")
        messages.info(f"Train: python -m thincdialog train {arguments.output} --output output")
    return 0
