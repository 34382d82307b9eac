"""The names that Python users import."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import thincdialog
from thincdialog import api


def imports_for_type_checkers():
    """Return (name, module) of each import that only type checkers read."""
    tree = ast.parse(Path(api.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    assert isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
    return {alias.name: node.module for node in block.body for alias in node.names}


def test_api_exports_all_that_it_imports():
    found = imports_for_type_checkers()
    assert sorted([*found, "load"]) == sorted(api.__all__)
    assert len(set(api.__all__)) == len(api.__all__)
    assert found == api._HOMES


@pytest.mark.parametrize("name", api.__all__)
def test_api_names_are_there(name):
    value = getattr(api, name)
    if name in api._HOMES:
        assert value is getattr(import_module(f"thincdialog.{api._HOMES[name]}"), name)
    assert name in dir(api)


def test_api_says_what_is_not_there():
    with pytest.raises(AttributeError, match="module 'thincdialog.api' has no attribute 'trian'"):
        api.trian  # noqa: B018
    with pytest.raises(AttributeError, match="module 'thincdialog' has no attribute 'trian'"):
        thincdialog.trian  # noqa: B018


def test_package_shows_what_there_is():
    """Run in a new process, where nothing has been imported by another test."""
    code = (
        "import sys, thincdialog; print(*dir(thincdialog)); print(thincdialog.load.__doc__[:20]);"
        "import thincdialog.api; from thincdialog.api import Problem;"
        "print(*{'numpy', 'thinc', 'confection', 'catalogue'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    names, text, heavy = done.stdout.splitlines()
    assert {"__version__", "api", "evaluate", "load", "train"} <= set(names.split())
    assert (text, heavy) == ("Load a saved model t", "")


def test_package_tells_type_checkers_that_it_has_types():
    assert (Path(thincdialog.__file__).parent / "py.typed").is_file()
