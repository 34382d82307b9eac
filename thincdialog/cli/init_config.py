"""``init config``: copy a bundled config as a starting point."""

import argparse
from pathlib import Path
from typing import Iterable

from ..errors import closest
from .arguments import UsageError, argument, command_line, json_flag
from .output import messages, print_json, table, write_text

EXAMPLES = [
    "init config --list",
    "init config quickstart.cfg",
    "init config --from ranker my_ranker.cfg",
    "init config --from ranker -",
]


def _names() -> Iterable[str]:
    from ..config import shipped_configs

    return shipped_configs()


ARGUMENTS = [
    argument("--from NAME", "name of a shipped config (default: the name of OUT)", suggest=_names,
             dest="name"),
    argument("--list", "list the shipped configs"),
    json_flag("the list"),
    argument("-F --force", "overwrite OUT"),
    argument("[OUT]", "output file, - for stdout"),
]  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    """Copy the config, or list the bundled configs."""
    from ..config import code_beside, command_in, find_shipped, shipped_configs, shipped_text

    if arguments.list:
        texts = {name: path.read_text("utf8") for name, path in shipped_configs().items()}
        known = [[name, text.split("\n", 1)[0].lstrip("# ")] for name, text in texts.items()]
        if arguments.json:
            print_json([dict(zip(("name", "about"), row)) for row in known])
        else:
            print(table([["name", "description"], *known], n_left=2))
        return
    if arguments.out is None:
        raise UsageError("init config needs OUT, the file to write (- for stdout), or --list")
    out, name = arguments.out, arguments.name
    if name is None:
        name = Path(out).name.removesuffix(".cfg")
        if name not in shipped_configs():
            raise UsageError(_unknown_config(name, out))
    text = shipped_text(name, out if out != "-" else f"{name.removesuffix('.cfg')}.cfg")
    write_text(out, text, arguments.force)
    if out != "-":
        file = find_shipped(name)
        own, code = file.with_suffix(".py"), code_beside(file, out)
        is_there = own.is_file() and code.is_file() and code.read_bytes() == own.read_bytes()
        if own.is_file() and not is_there:
            write_text(str(code), own.read_text("utf8"), arguments.force)
        words = command_in(text)
        needs_data = any(word.startswith("--paths.") for word in words)
        yours = ", with your own files after --paths" if needs_data else ""
        messages.info(f"Train{yours}: {command_line(*words)}")


def _unknown_config(name: str, out: str) -> str:
    """Explain that OUT does not name a bundled config, and how to choose one."""
    from ..config import shipped_configs

    known = list(shipped_configs())
    likely = closest(name, known, 0.7) or "quickstart"
    command = command_line("init", "config", "--from", likely, out)
    which = "name one with --from" if out == "-" else f"there is no shipped config '{name}'"
    return f"{which} (choose from: {', '.join(known)}). For example: {command}"
