"""``debug config``: check a config without training."""

import argparse
import re
import sys
from typing import Any, Dict, Iterator, List, Tuple

from .arguments import add_code, add_config
from .json_output import add_json, print_json
from .output import Messages, table

EXAMPLES = [
    "debug config quickstart.cfg",
    "debug config ranker.cfg --functions --variables --paths.train train.jsonl",
    "debug config ranker.cfg --json",
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_config(parser)
    parser.add_argument("--functions", action="store_true", help="show the functions it uses")
    parser.add_argument("--variables", action="store_true", help="show the variables it uses")
    add_json(parser, "problems, functions and variables")
    add_code(parser)


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Check the config, and show what it uses."""
    from ..config import check_config, load_code, load_config
    from ..config.values import show_value
    from ..errors import ConfigError
    from ..training.experiment import Experiment

    load_code(arguments.code)
    problems = check_config(arguments.config, overrides)
    if not problems:
        checked = load_config(arguments.config, overrides)
        problems = Experiment(checked).missing_packages()
    if problems and arguments.json:
        print_json({"config": arguments.config, "problems": [_problem(each) for each in problems]})
        return ConfigError.exit_code
    if problems:
        raise ConfigError(problems, arguments.config)
    functions = list(_functions(checked.config, ""))
    variables = _variables(checked.config, checked.interpolated)
    if arguments.json:
        print_json(
            {
                "config": arguments.config,
                "problems": [],
                "functions": [dict(zip(("section", "function", "file"), f)) for f in functions],
                "variables": dict(variables),
            }
        )
        return 0
    if arguments.functions:
        rows = [[f"[{section}]", *rest] for section, *rest in functions]
        print(table([["section", "function", "file"], *rows], n_left=3))
    if arguments.variables:
        rows = [[name, show_value(value)] for name, value in variables]
        print(table([["variable", "value"], *rows], n_left=2))
    Messages(sys.stderr).good(f"{arguments.config}: nothing is wrong")
    return 0


def _functions(section: Dict[str, Any], path: str) -> Iterator[List[str]]:
    from ..config.functions import describe_function

    for key, value in section.items():
        if key.startswith("@"):
            yield [path, value, describe_function(key[1:], value).where]
        elif isinstance(value, dict):
            yield from _functions(value, f"{path}.{key}" if path else key)


def _problem(problem: Any) -> Dict[str, Any]:
    """A problem in parts: a line of a file or an option is at fault; the section is the
    one that the text names."""
    file, colon, line = problem.where.rpartition(":")
    has_line = bool(colon) and line.isdigit()
    is_option = problem.where.startswith("--")
    section = re.match(r"\[([^\]]+)\]", problem.text)
    return {
        "file": file if has_line else None if is_option else problem.where or None,
        "line": int(line) if has_line else None,
        "option": problem.where if is_option else None,
        "section": section[1] if section else None,
        "text": problem.text,
        "hint": problem.hint,
    }


def _variables(config: Any, interpolated: Any) -> List[Tuple[str, Any]]:
    from ..config.variables import variables_in

    rows = []
    for name in sorted(set(variables_in(config))):
        value = interpolated
        for part in name.split("."):
            value = value[part]
        rows.append((name, value))
    return rows
