"""``init config``: copy a config that comes along, to start from."""

import argparse
from typing import Iterable

from .arguments import UsageError, argument, json_flag
from .json_output import print_json
from .output import messages, table
from .writing import write_text

EXAMPLES = [
    "init config --list",
    "init config quickstart.cfg",
    "init config --from ranker my_ranker.cfg",
]


def _names() -> Iterable[str]:
    from ..config import shipped_configs

    return shipped_configs()


ARGUMENTS = [
    argument("--from NAME", "which config", default="quickstart", suggest=_names, dest="name"),
    argument("--list", "list the configs that come along"),
    json_flag("the list"),
    argument("-F --force", "overwrite OUT"),
    argument("[OUT]", "file to write; - for stdout"),
]


def run(arguments: argparse.Namespace) -> None:
    """Copy the config, or list those there are."""
    from ..config import find_shipped, shipped_configs

    if arguments.list:
        texts = {name: path.read_text("utf8") for name, path in shipped_configs().items()}
        known = [[name, text.split("\n", 1)[0].lstrip("# ")] for name, text in texts.items()]
        if arguments.json:
            print_json([dict(zip(("name", "about"), row)) for row in known])
        else:
            print(table([["name", "what it is"], *known], n_left=2))
        return
    if arguments.out is None:
        raise UsageError("init config needs OUT, the file to write (- for stdout), or --list")
    text = find_shipped(arguments.name).read_text(encoding="utf8")
    write_text(arguments.out, text, arguments.force)
    if arguments.out != "-":
        messages.good(f"Wrote {arguments.out}")
        messages.info(f"Train: python -m thincdialog train {arguments.out} --output output")
