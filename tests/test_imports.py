"""Import rules: a part of the package may only import parts to the left of it (see ORDER)."""

import ast
from collections import defaultdict
from pathlib import Path

from tests.test_house import PACKAGE, trees

# Parts of the package, from left to right. Parts between two "<" do not import each other.
ORDER = """
errors, signals < contract < messages, files < registry < config < ops, metrics, batchers < protocol
< formats, mutators < examples < layers, losses, schedules, optimizers, data
< models < teachers < loader, pretrained, agents < worlds, loggers, callbacks < training
< evaluation < runs, runners < inspection, serving < plotting < api < cli < __main__
"""
GROUPS = [[part.strip() for part in group.split(",")] for group in ORDER.split("<")]
# Parts that are in no group may not be imported.
RANK = defaultdict(lambda: 99, {part: n for n, group in enumerate(GROUPS) for part in group})


def part_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(file: Path):
    """Yield (line, part) of every import of the package itself, also in functions."""
    package = ["thincdialog", *file.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(trees()[file]):
        if isinstance(node, ast.Import):
            modules = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            modules = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for module in modules:
            if module[0] == "thincdialog" and len(module) > 1:
                yield node.lineno, module[1]


def test_imports_go_left_only():
    wrong = []
    for file in trees():
        part, imported = part_of(file), list(imported_parts(file))
        if part == "__init__":  # The version, which every part may read, and api on first use.
            assert {name for _, name in imported} == {"api"}
            continue
        wrong += [
            f"{file.relative_to(PACKAGE)}:{line} '{part}' must not import '{other}'"
            for line, other in imported
            if not other.startswith("__") and other != part and RANK[other] >= RANK[part]
        ]
    assert not wrong, "\n".join(wrong)


def test_imports_layers_know_arrays_only():
    files = [file for file in trees() if part_of(file) == "layers"]
    known = {other for file in files for _, other in imported_parts(file)}
    assert known and not known & {"messages", "protocol", "config"}


def test_imports_only_the_command_line_prints_and_exits():
    found = []
    for file, tree in trees().items():
        for node in ast.walk(tree) if part_of(file) not in ("cli", "__main__") else ():
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if called and node.func.id in ("print", "exit", "quit"):
                found.append(f"{file.name}:{node.lineno} {node.func.id}()")
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id == "sys" and node.attr in ("argv", "exit"):
                    found.append(f"{file.name}:{node.lineno} sys.{node.attr}")
    assert not found, "\n".join(found)


def test_imports_no_layer_asks_which_ops_it_has():
    """Functions that depend on the ops are in ops/, and all other files call these."""
    found = []
    for file, tree in trees().items():
        for node in ast.walk(tree) if part_of(file) != "ops" else ():
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if called and node.func.id in ("isinstance", "type"):
                names = [getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node)]
                if any(name == "ops" or name.endswith("Ops") for name in names):
                    found.append(f"{file.relative_to(PACKAGE)}:{node.lineno}")
    assert not found, "\n".join(found)
