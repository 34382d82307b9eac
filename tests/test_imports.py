"""Who may import whom: what stands further left (see ORDER), never the other way."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "thincdialog"

# Parts of the package, left to right; the parts of one group do not import each other.
ORDER = [
    ["errors"],
    ["columns", "messages", "files"],
    ["protocol"],
    ["registry"],
    ["config"],
    ["ops", "metrics"],
    ["layers", "losses", "schedules", "optimizers", "data"],
    ["batchers", "formats"],
    ["models", "generation", "mutators", "teachers"],
    ["agents"],
    ["worlds"],
    ["loggers", "callbacks"],
    ["parallel"],
    ["training"],
    ["evaluation"],
    ["runs"],
    ["inspection"],
    ["serving", "plotting"],
    ["api"],
    ["cli"],
    ["__main__"],
]
RANK = {part: rank for rank, group in enumerate(ORDER) for part in group}
FILES = sorted(PACKAGE.rglob("*.py"))


def part_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(file: Path):
    """(line, part) of every import of the package itself, also those in functions."""
    package = ["thincdialog", *file.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
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


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_go_left_only(file):
    part = part_of(file)
    if part == "__init__":  # the version, which everybody may read, and api on first use
        assert [name for _, name in imported_parts(file)] == ["api"]
        return
    wrong = [
        f"line {line}: '{part}' must not import '{other}'"
        for line, other in imported_parts(file)
        if not other.startswith("__") and other != part and RANK[other] >= RANK[part]
    ]
    assert wrong == []


def test_imports_layers_know_arrays_only():
    files = [file for file in FILES if part_of(file) == "layers"]
    assert files
    known = {other for file in files for _, other in imported_parts(file)}
    assert not known & {"messages", "protocol", "config"}


def test_imports_only_the_command_line_prints_and_exits():
    found = []
    for file in FILES:
        if part_of(file) in ("cli", "__main__"):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if called and node.func.id in ("print", "exit", "quit"):
                found.append(f"{file.name}:{node.lineno} {node.func.id}()")
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id == "sys" and node.attr in ("argv", "exit"):
                    found.append(f"{file.name}:{node.lineno} sys.{node.attr}")
    assert found == []
