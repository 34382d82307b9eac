"""Registries: no name disappears, no name is taken twice, and packages can add their own.

After adding a registered function, add its name to the list: python tests/test_registry.py
"""

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import catalogue
import pytest
import thinc.api
from thinc.config import registry as thinc_registry

from thincdialog.api import DialogError, registry
from thincdialog.cli.main import main
from thincdialog.registry import BrokenEntryPointError, DialogRegistry, DuplicateNameError

CONTENTS = Path(__file__).parent / "registry_contents.json"
ROOT = Path(__file__).resolve().parents[1]


def registered_names():
    """Return our own names. Thinc's are tested in Thinc."""
    registry.ensure_populated()
    return {
        name: sorted(other for other in known.get_all() if other.startswith("thincdialog"))
        for name, known in sorted(registry.all_registries().items())
    }


def test_registry_no_name_vanishes():
    expected = json.loads(CONTENTS.read_text(encoding="utf8"))
    found = registered_names()
    assert list(expected) == list(found)
    for name, names in expected.items():
        assert set(names) <= set(found[name]), f"names have vanished from '{name}'"
        assert set(found[name]) <= set(names), f"new names: run tests/test_registry.py ({name})"


def test_registry_finds_thincs_functions_and_ours_in_one_place():
    assert registry.layers.get("Linear.v1") is thinc.api.Linear
    assert registry.has("optimizers", "Adam.v1") and not registry.has("optimizers", "Adam.v9")
    # Thinc's own registry contains our layers, so its combinators can be configured with them.
    ours = registry.layers.get("thincdialog.BagEmbed.v1")
    assert thinc_registry.layers.get("thincdialog.BagEmbed.v1") is ours


def test_registry_all_our_names_have_a_version_and_a_docstring():
    for registry_name, names in registered_names().items():
        for name in names if registry_name != "ops" else ():  # Thinc looks ops up by Ops.name.
            assert name.rpartition(".v")[2].isdigit(), name
            assert registry.get(registry_name, name).__doc__, f"{name} has no docstring"


@pytest.fixture
def known():
    """Return a registry of its own."""
    known = DialogRegistry(("test_thincdialog", "layers"), entry_points=True)
    yield known
    for path in [path for path in catalogue.REGISTRY if path[0] == "test_thincdialog"]:
        del catalogue.REGISTRY[path]


def test_registry_refuses_a_second_function(known):
    first = known("a.v1")(json.loads)
    assert known.register("a.v1", func=first) is first
    with pytest.raises(DuplicateNameError, match=r"'a\.v1' is registered twice in 'layers': by "):
        known("a.v1")(json.dumps)
    assert known.get("a.v1") is first


def test_registry_function_of_reloaded_code_is_no_second_one(known):
    for _ in range(2):
        space = {}
        exec(compile("def f(): pass", "my_code.py", "exec"), space)
        assert known.register("b.v1", func=space["f"]) is known.get("b.v1") is space["f"]


def offer(monkeypatch, **values):
    """Pretend that installed packages have entry points."""
    found = [EntryPoint(name.replace("_", "."), at, "layers") for name, at in values.items()]
    monkeypatch.setattr(DialogRegistry, "_get_entry_points", lambda self: found)


def test_registry_entry_points(known, monkeypatch):
    offer(monkeypatch, dumps_v1="json:dumps")
    assert "dumps.v1" in known and "dumps.v2" not in known
    assert known.get("dumps.v1") is json.dumps
    assert known.get_all() == {"dumps.v1": json.dumps}
    # The package may also use the decorator for the same function.
    with pytest.raises(DuplicateNameError, match=r"by the installed package '\?' \(json:dumps\)"):
        known.register("dumps.v1", func=json.loads)
    assert known.register("dumps.v1", func=json.dumps) is json.dumps
    known.check_entry_points()


def test_registry_broken_entry_point_breaks_only_itself(known, monkeypatch):
    offer(monkeypatch, good_v1="json:dumps", bad_v1="no_such_module:f", worse_v1="json:nothing")
    known.register("own.v1", func=json.loads)
    assert known.get_all() == {"good.v1": json.dumps, "own.v1": json.loads}
    assert "bad.v1" in known and "own.v1" in known
    assert known.get("own.v1") is json.loads
    with pytest.raises(catalogue.RegistryError):
        known.get("nothing.v1")
    with pytest.raises(BrokenEntryPointError, match=r"'bad\.v1' in 'layers' comes from .*Module"):
        known.get("bad.v1")
    assert [text.split("'")[1] for text in known.broken_entry_points()] == ["bad.v1", "worse.v1"]
    known.check_entry_points()


def test_registry_package_cannot_take_a_name_that_is_taken(known, monkeypatch):
    known.register("own.v1", func=json.loads)
    offer(monkeypatch, own_v1="other_package:f")
    with pytest.raises(DuplicateNameError, match=r"\(other_package:f\). Uninstall one of them"):
        known.check_entry_points()
    assert issubclass(DuplicateNameError, DialogError)


PACKAGE = '''
from typing import Optional
from thinc.api import Linear, Model
from thinc.types import Floats2d
from thincdialog.api import Message, Teacher, registry

def echo_teacher(n: int = 50) -> Teacher:
    """Says a word; the answer is the same word."""
    words = ["tea", "coffee", "juice"] * n
    def episodes():
        return ([Message(text=f"please {word}", labels=[word])] for word in words[:n])
    return Teacher({"train": episodes, "dev": episodes}, origin="echo")

@registry.layers("parrot.Wide.v1")
def wide_layer(nO: Optional[int] = None, nI: Optional[int] = None) -> Model[Floats2d, Floats2d]:
    """A linear layer of a package."""
    return Linear(nO, nI)
'''
ENTRY_POINTS = """
[thincdialog_teachers]
parrot.Echo.v1 = parrot_dialog:echo_teacher
parrot.Broken.v1 = parrot_dialog:nothing

[thinc_layers]
parrot.Wide.v1 = parrot_dialog:wide_layer
"""
CONFIG = """
[tasks.echo]
@teachers = "parrot.Echo.v1"
n = 60
[tokenizer]
@tokenizers = "thincdialog.Words.v1"
[agent]
@agents = "thincdialog.Classifier.v1"
[agent.model]
@layers = "chain.v1"
[agent.model.*.encoder]
@models = "thincdialog.BagEncoder.v1"
width = 8
[agent.model.*.wide]
@layers = "parrot.Wide.v1"
[training]
max_epochs = 20
[training.optimizer]
learn_rate = 0.05
"""


@pytest.mark.slow
def test_registry_installed_package_trains_with_its_layer_and_its_teacher(tmp_path, capsys):
    # The files that pip installs. Entry points are read once, when a process starts.
    files = {
        "site/parrot_dialog.py": PACKAGE,
        "site/parrot_dialog-1.0.dist-info/METADATA": "Name: parrot-dialog\nVersion: 1.0\n",
        "site/parrot_dialog-1.0.dist-info/entry_points.txt": ENTRY_POINTS,
        "parrot.cfg": CONFIG,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "thincdialog", "train", "parrot.cfg", "--output", "out"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    best = tmp_path / "out" / "model-best"
    scores = json.loads((best / "meta.json").read_text())["dev"]
    assert scores["accuracy"] == 1.0 and scores["examples"] == 60
    # The same model does not load if the package is not installed.
    assert main(["evaluate", str(best), "--split", "dev"]) == 1
    shown = capsys.readouterr().err
    assert "'parrot.Echo.v1' is not in 'teachers'" in shown
    assert "'parrot.Wide.v1' is not in 'layers'" in shown
    assert "Traceback" not in shown


if __name__ == "__main__":
    CONTENTS.write_text(json.dumps(registered_names(), indent=1) + "\n", encoding="utf8")
