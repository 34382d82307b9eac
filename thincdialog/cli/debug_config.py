"""``debug config``: check a config without training."""

import argparse
import sys
from typing import Any, Dict, Iterator, List

from .arguments import add_code, add_config
from .output import Messages, table

EXAMPLES = [
    "debug config quickstart.cfg",
    "debug config ranker.cfg --functions --variables --paths.train train.jsonl",
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_config(parser)
    parser.add_argument("--functions", action="store_true", help="show the functions it uses")
    parser.add_argument("--variables", action="store_true", help="show the variables it uses")
    add_code(parser)


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Check the config, and show what it uses."""
    from ..config import check_config, load_code, load_config
    from ..errors import ConfigError

    load_code(arguments.code)
    problems = check_config(arguments.config, overrides)
    if problems:
        raise ConfigError(problems, arguments.config)
    checked = load_config(arguments.config, overrides)
    if arguments.functions:
        print(table([["section", "function", "file"], *_functions(checked.config, "")], n_left=3))
    if arguments.variables:
        rows = _variables(checked.config, checked.interpolated)
        print(table([["variable", "value"], *rows], n_left=2))
    Messages(sys.stderr).good(f"{arguments.config}: nothing is wrong")
    return 0


def _functions(section: Dict[str, Any], path: str) -> Iterator[List[str]]:
    from ..config.functions import describe_function

    for key, value in section.items():
        if key.startswith("@"):
            yield [f"[{path}]", value, describe_function(key[1:], value).where]
        elif isinstance(value, dict):
            yield from _functions(value, f"{path}.{key}" if path else key)


def _variables(config: Any, interpolated: Any) -> List[List[str]]:
    from ..config.values import show_value
    from ..config.variables import variables_in

    rows = []
    for name in sorted(set(variables_in(config))):
        value = interpolated
        for part in name.split("."):
            value = value[part]
        rows.append([name, show_value(value)])
    return rows
