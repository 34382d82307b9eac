"""``completion``: a script that lets a shell complete command lines."""

import argparse
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

from .arguments import suggested

EXAMPLES = [
    "completion bash > ~/.local/share/bash-completion/completions/thincdialog",
    "completion zsh > ~/.zfunc/_thincdialog",
    "completion fish > ~/.config/fish/completions/thincdialog.fish",
]

ABOUT = """
It completes the program `thincdialog`: commands, options, files, and the settings
--section.key: all those with defaults, and those in a config or model that the command
line names. Nothing of Python runs while you type. Or for this session only:
  source <(thincdialog completion bash)      (zsh: the same)
  thincdialog completion fish | source"""

# What an argument is called that takes a file or folder.
FILES = ("FILE", "FOLDER", "CONFIG", "OTHER", "MODEL", "A", "B", "IN", "OUT", "RUN")


class Value(NamedTuple):
    """What may stand as an argument.

    choices (Tuple[str, ...]): Words to offer; any text or number if there are none.
    is_file (bool): Whether it is a file or folder.
    """

    choices: Tuple[str, ...] = ()
    is_file: bool = False


class Option(NamedTuple):
    """An option of a command.

    names (Tuple[str, ...]): Such as "-o" and "--output".
    about (str): What it does.
    value (Optional[Value]): What follows it; None for nothing.
    """

    names: Tuple[str, ...]
    about: str
    value: Optional[Value]


class Line(NamedTuple):
    """What can stand in the command line of a command.

    name (str): One word or two.
    aliases (Tuple[str, ...]): Other names.
    about (str): What it does.
    options (List[Option]): In the order of its help.
    argument (Value): What its arguments are that are no options.
    takes_settings (bool): Whether it takes --section.key.
    """

    name: str
    aliases: Tuple[str, ...]
    about: str
    options: List[Option]
    argument: Value
    takes_settings: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.description = f"{parser.description or ''}{ABOUT}"
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Print the script."""
    from . import completion_scripts

    write = getattr(completion_scripts, arguments.shell)
    sys.stdout.write(write(command_lines(), default_settings()))
    return 0


def command_lines() -> List[Line]:
    """All commands, from their parsers."""
    from .main import COMMANDS, make_parser

    lines = []
    for name, command in COMMANDS.items():
        parser = make_parser(name)
        options, argument = [], Value()
        for action in parser._actions:
            if action.option_strings:
                value = None if action.nargs == 0 else _value(action)
                names = tuple(action.option_strings)
                options.append(Option(names, (action.help or "").replace("%%", "%"), value))
            elif argument == Value():
                argument = _value(action)
        lines.append(
            Line(name, command.aliases, command.about, options, argument, command.takes_overrides)
        )
    return lines


def _value(action: argparse.Action) -> Value:
    words = suggested(action)
    return Value(words) if words else Value(is_file=action.metavar in FILES)


def default_settings() -> List[str]:
    """The settings that have defaults: "training.max_steps"."""
    defaults = Path(__file__).parent.parent / "config" / "default_config.cfg"
    section, found = "", []
    for line in defaults.read_text(encoding="utf8").splitlines():
        key, equals, _ = line.partition(" = ")
        if line.startswith("["):
            section = line.strip("[]")
        elif equals and key.isidentifier():
            found.append(f"{section}.{key}")
    return found
