"""``debug config``: check a config without training."""

import argparse
import re
from functools import reduce
from operator import getitem
from typing import Any, Dict

from .arguments import CONFIG, json_flag
from .output import messages, print_json

EXAMPLES = [
    "debug config quickstart.cfg",
    "debug config ranker.cfg --paths.train train.jsonl",
    "debug config ranker.cfg --json",
]

ARGUMENTS = [
    CONFIG,
    json_flag("the problems, and the functions and variables that the config uses"),
]


def run(arguments: argparse.Namespace) -> int:
    """Check the config; with ``--json``, show what it uses."""
    from ..config import check_config, load_code, load_config
    from ..config.functions import describe_function
    from ..config.variables import variables_in
    from ..errors import ConfigError
    from ..inspection.try_agent import try_agent
    from ..loggers.values import leaves
    from ..training.experiment import Experiment
    from ..training.problems import find_problems, missing_packages

    load_code(arguments.code)
    problems = check_config(arguments.config, arguments.overrides)
    if not problems:
        checked = load_config(arguments.config, arguments.overrides)
        experiment = Experiment.from_config(checked, on_cpu=True)
        problems = [*missing_packages(experiment), *find_problems(experiment)]
        if arguments.code is not None and not problems:
            problems = try_agent(experiment)
    if problems:
        if not arguments.json:
            raise ConfigError(problems, arguments.config)
        print_json({"config": arguments.config, "problems": list(map(_problem, problems))})
        return ConfigError.exit_code
    if not arguments.json:
        messages.good(f"{arguments.config}: no problems found")
        return 0
    functions = []
    for name, value in leaves(checked.config):
        section, _, key = name.rpartition(".")
        if key.startswith("@"):
            where = describe_function(key[1:], value).where
            functions.append({"section": section, "function": value, "file": where})
    names = sorted(set(variables_in(checked.config)))
    variables = {name: reduce(getitem, name.split("."), checked.interpolated) for name in names}
    found = {"config": arguments.config, "problems": []}
    print_json({**found, "functions": functions, "variables": variables})
    return 0


def _problem(problem: Any) -> Dict[str, Any]:
    """Split a problem into parts: file and line, or option; section; text and hint."""
    is_option = problem.where.startswith("--")
    section = re.match(r"\[([^\]]+)\]", problem.text)
    file = problem.where.removesuffix(f":{problem.line}") or None
    return {
        "file": None if is_option else file,
        "line": problem.line,
        "option": problem.where if is_option else None,
        "section": section[1] if section else None,
        "text": problem.text,
        "hint": problem.hint,
    }
