"""``completion``: let a shell complete command lines, with argcomplete."""

import argparse
import os
import sys
from pathlib import Path
from typing import Iterator, Optional, TextIO

from .arguments import argument

EXAMPLES = [
    "completion bash >> ~/.bashrc",
    "completion zsh >> ~/.zshrc",
    "completion fish > ~/.config/fish/completions/thincdialog.fish",
]

ABOUT = """
With the script, TAB completes commands, options, files and settings (--section.key) of the program
`thincdialog`. If the command line names a config or a model, TAB also completes its settings. Each
TAB takes about 0.1 s. To try the script in this session only:
  source <(thincdialog completion bash)      (the same for zsh)
  thincdialog completion fish | source"""

ARGUMENTS = [argument("shell", "your shell", choices=("bash", "zsh", "fish"))]
DEFAULTS = Path(__file__).parent.parent / "config" / "default_config.cfg"


def run(arguments: argparse.Namespace) -> None:
    """Print the script for the shell. With the script, the shell calls ``complete`` at each TAB."""
    import argcomplete

    sys.stdout.write(argcomplete.shellcode(["thincdialog"], shell=arguments.shell))


def complete(output: Optional[TextIO] = None) -> None:
    """Print the completions of the command line in the environment, and end the program.

    output (Optional[TextIO]): Stream for the shell; if None, the stream that the shell has opened.
    """
    import argcomplete

    from .main import COMMANDS, make_parser

    settings = argparse.ArgumentParser(add_help=False)
    for name in dict.fromkeys(_settings(os.environ["COMP_LINE"])):
        settings.add_argument(f"--{name}")
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", action="store_true")
    commands = parser.add_subparsers()
    groups = {"": commands}
    for name, command in COMMANDS.items():
        group, _, word = name.rpartition(" ")
        if group not in groups:
            groups[group] = commands.add_parser(group).add_subparsers()
        parents = [make_parser(name), *([settings] if command.takes_overrides else [])]
        groups[group].add_parser(
            word, parents=parents, aliases=command.aliases, help=command.about, add_help=False
        )
    argcomplete.autocomplete(
        parser, always_complete_options=False, exit_method=sys.exit, output_stream=output
    )


def _settings(line: str) -> Iterator[str]:
    """Yield the names of settings: those with defaults, and those of configs in the line."""
    yield from settings_in(DEFAULTS)
    for word in line.split():
        path = Path(word) / "config.cfg" if os.path.isdir(word) else Path(word)
        if path.suffix == ".cfg" and path.is_file():
            yield from settings_in(path)


def settings_in(path: Path) -> Iterator[str]:
    """Yield the names of all settings in a config ("training.max_steps"), except in lists."""
    section = ""
    for line in path.read_text(encoding="utf8", errors="replace").splitlines():
        key, equals, _ = line.partition("=")
        if line.startswith("["):
            section = line.strip("[] ")
        elif equals and key.strip().isidentifier() and section and "*" not in section:
            yield f"{section}.{key.strip()}"
