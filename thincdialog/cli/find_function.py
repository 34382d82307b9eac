"""``find-function``: where a registered function is, and how it is used."""

import argparse
import difflib
import inspect
import re
import sys
from typing import Any, Dict, Iterable, List

from .arguments import add_code, suggest
from .errors import UsageError
from .json_output import add_json, print_json
from .output import Messages, table

EXAMPLES = [
    "find-function thincdialog.Ranker.v1",
    "find-function Adam.v1 --registry optimizers",
    "find-function --list agents",
    "find-function --list",
    "find-function --list teachers --json",
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="its registered name")
    only = parser.add_argument("-r", "--registry", metavar="REGISTRY", help="look only in this one")
    listed = parser.add_argument(
        "--list",
        metavar="REGISTRY",
        nargs="?",
        const="",
        help="list a registry, or the registries",
    )
    for action in (only, listed):
        suggest(action, _registries)
    add_json(parser, "what is found")
    add_code(parser)


def _registries() -> Iterable[str]:
    from ..registry import registry

    return sorted(registry.all_registries())


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Show a function, or list a registry."""
    from ..config import load_code
    from ..registry import registry

    registry.ensure_populated()
    load_code(arguments.code)
    known = registry.all_registries()
    for name in (arguments.registry, arguments.list):
        if name and name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(known)}"
            raise UsageError(f"there is no registry '{name}' - {hint}")
    if arguments.list is not None:
        header, *rows = _list(arguments.list)
        if arguments.json:
            print_json([dict(zip(header, row)) for row in rows])
        else:
            print(
                table(
                    [header, *([str(cell) for cell in row] for row in rows)],
                    len(header) - (not arguments.list),
                )
            )
        return 0
    if arguments.name is None:
        raise UsageError("find-function needs NAME, or --list REGISTRY")
    registries = [arguments.registry] if arguments.registry else list(known)
    return _show(arguments.name, registries, arguments.json)


def _list(registry_name: str) -> List[List[Any]]:
    """Header and rows."""
    from ..config.functions import describe_function
    from ..registry import registry

    known = registry.all_registries()
    if not registry_name:
        counts = [[name, len(value.get_all())] for name, value in sorted(known.items())]
        return [["registry", "functions"], *counts]
    rows = []
    for name in sorted(known[registry_name].get_all()):
        info = describe_function(registry_name, name)
        about = (inspect.getdoc(info.function) or "").split("\n\n")[0].replace("\n", " ")
        # Its first sentence.
        rows.append([name, info.where, re.split(r"(?<=\.) (?=[A-Z])", about)[0]])
    return [["name", "file", "what it does"], *rows]


def _show(name: str, registries: List[str], as_json: bool) -> int:
    from ..config.functions import describe_function
    from ..config.suggestions import close_functions
    from ..registry import registry

    known = registry.all_registries()
    found = [registry_name for registry_name in registries if name in known[registry_name]]
    if as_json:
        print_json([_facts(registry_name, name) for registry_name in found])
    for registry_name in () if as_json else found:
        info = describe_function(registry_name, name)
        print(f'@{registry_name} = "{name}"\n{info.where}\n')
        try:
            shown = inspect.formatannotation
            parameters = inspect.signature(info.function).parameters.values()
            lines = [f"    {str(parameter)}," for parameter in parameters]
            returned = inspect.signature(info.function).return_annotation
            arrow = "" if returned is inspect.Signature.empty else f" -> {shown(returned)}"
            print("\n".join([f"{info.function.__name__}(", *lines, f"){arrow}"]))
        except (TypeError, ValueError):
            print("its signature is not known")
        documentation = inspect.getdoc(info.function)
        print(f"\n{documentation}\n" if documentation else "\nIt has no documentation.\n")
    if found:
        return 0
    names = {other for registry_name in registries for other in known[registry_name].get_all()}
    close = close_functions(name, sorted(names), 3)
    hint = f"did you mean {' or '.join(close)}?" if close else "see --list"
    Messages(sys.stderr).fail(f"there is no registered function '{name}' - {hint}")
    return 1


def _facts(registry_name: str, name: str) -> Dict[str, Any]:
    from ..config.functions import describe_function

    info = describe_function(registry_name, name)
    try:
        signature = inspect.signature(info.function)
    except (TypeError, ValueError):
        signature = inspect.Signature()
    return {
        "registry": registry_name,
        "name": name,
        "file": info.where,
        "parameters": {
            parameter.name: str(parameter) for parameter in signature.parameters.values()
        },
        "documentation": inspect.getdoc(info.function),
    }
