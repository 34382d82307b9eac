"""House rules that a reader relies on."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "thincdialog").rglob("*.py"))
MAX_LINES = 310


def names(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("file", FILES, ids=names)
def test_house_file_is_short(file):
    assert len(file.read_text(encoding="utf8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize("file", FILES, ids=names)
def test_house_public_names_have_docstrings(file):
    tree = ast.parse(file.read_text(encoding="utf8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    without = [
        node.name
        for node in tree.body
        if isinstance(node, kinds)
        and not node.name.startswith("_")
        # Thinc's layers: the builder's docstring speaks for these two.
        and node.name not in ("forward", "init")
        and not ast.get_docstring(node)
    ]
    assert without == []


@pytest.mark.parametrize("file", FILES, ids=names)
def test_house_registering_files_have_real_annotations(file):
    # Config checks read annotations: as strings, one bad name switches all of them off.
    source = file.read_text(encoding="utf8")
    if "@registry." in source:
        assert "from __future__ import annotations" not in source


def test_house_every_package_of_tests_mirrors_one_of_the_project():
    packages = {file.parent.name for file in FILES} | {"benchmarks"}
    tests = {path.name for path in (ROOT / "tests").iterdir() if any(path.glob("test_*.py"))}
    assert tests <= packages


def test_house_makefile_is_short_and_lists_its_targets():
    lines = (ROOT / "Makefile").read_text(encoding="utf8").splitlines()
    assert len(lines) <= 60
    phony = next(line for line in lines if line.startswith(".PHONY")).split()[1:]
    listed = [line.split(":")[0] for line in lines if "##" in line and not line.startswith("\t")]
    assert phony == listed
