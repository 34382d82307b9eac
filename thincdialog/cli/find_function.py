"""``find-function``: show the place and the usage of a registered function."""

import argparse
import inspect
import re
from typing import Any, Dict, Iterable, List, Mapping, Tuple

from ..errors import closest
from .arguments import CODE, UsageError, argument, json_flag
from .output import messages, print_json, table

EXAMPLES = [
    "find-function thincdialog.Ranker.v1",
    "find-function Adam.v1 --registry optimizers",
    "find-function --list agents",
    "find-function --list",
    "find-function --list teachers --json",
]


def _registries() -> Iterable[str]:
    from ..registry import registry

    return sorted(registry.all_registries())


ARGUMENTS = [
    argument("[NAME]", "registered name, for example thincdialog.Ranker.v1"),
    argument("-r --registry REGISTRY", "registry to search (default: all)", suggest=_registries),
    argument("--list [REGISTRY]", "list the functions of a registry, or all registries", const="",
             suggest=_registries),
    json_flag("the result"),
    CODE,
]  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Show a function, or list a registry."""
    from ..config import load_code
    from ..config.suggestions import close_functions
    from ..registry import registry

    registry.ensure_populated()
    load_code(arguments.code)
    known = registry.all_registries()
    for name in (arguments.registry, arguments.list):
        if name and name not in known:
            close = closest(name, known)
            hint = f"did you mean '{close}'?" if close else f"choose from: {', '.join(known)}"
            raise UsageError(f"there is no registry '{name}' - {hint}")
    if arguments.list is not None:
        header, *rows = _list_functions(known, arguments.list) if arguments.list else _count(known)
        if arguments.json:
            print_json([dict(zip(header, row)) for row in rows])
        else:
            cells = [[str(cell) for cell in row] for row in (header, *rows)]
            print(table(cells, n_left=3 if arguments.list else 1))
        return 0
    if arguments.name is None:
        raise UsageError("find-function needs NAME, or --list REGISTRY")
    searched = [arguments.registry] if arguments.registry else list(known)
    found = [_describe(each, arguments.name) for each in searched if arguments.name in known[each]]
    if arguments.json:
        print_json([facts for facts, _ in found])
    else:
        print(*(text for _, text in found), sep="", end="")
    if not found:
        names = sorted({name for each in searched for name in known[each].get_all()})
        near = close_functions(arguments.name, names, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "see --list"
        messages.fail(f"there is no registered function '{arguments.name}' - {hint}")
    return 0 if found else 1


def _count(known: Mapping[str, Any]) -> List[List[Any]]:
    counts = [[name, len(functions.get_all())] for name, functions in sorted(known.items())]
    return [["registry", "functions"], *counts]


def _list_functions(known: Mapping[str, Any], registry_name: str) -> List[List[Any]]:
    from ..config.functions import describe_function

    rows = []
    for name in sorted(known[registry_name].get_all()):
        info = describe_function(registry_name, name)
        about = (inspect.getdoc(info.function) or "").split("\n\n")[0].replace("\n", " ")
        # Show only the first sentence.
        rows.append([name, info.where, re.split(r"(?<=\.) (?=[A-Z])", about)[0]])
    return [["name", "file", "what it does"], *rows]


def _describe(registry_name: str, name: str) -> Tuple[Dict[str, Any], str]:
    """Return the description of a function for JSON, and as text."""
    from ..config.functions import describe_function

    info = describe_function(registry_name, name)
    documentation = inspect.getdoc(info.function)
    try:
        signature = inspect.signature(info.function)
        lines = "".join(f"    {each},\n" for each in signature.parameters.values())
        shown = f"{info.function.__name__}(\n{lines})"
        if signature.return_annotation is not signature.empty:
            shown += f" -> {inspect.formatannotation(signature.return_annotation)}"
    except (TypeError, ValueError):
        signature, shown = inspect.Signature(), "its signature is not known"
    facts: Dict[str, Any] = {"registry": registry_name, "name": name, "file": info.where}
    facts["parameters"] = {each.name: str(each) for each in signature.parameters.values()}
    facts["documentation"] = documentation
    text = f'@{registry_name} = "{name}"\n{info.where}\n\n{shown}\n\n'
    return facts, f"{text}{documentation or 'It has no documentation.'}\n\n"
