"""What README.md says works as it stands."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from thincdialog.cli.main import COMMANDS, main

MY_CFG = """[tasks.coffee]
@teachers = "thincdialog.CoffeeOrder.v1"

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.Ranker.v1"
candidates = "inline"

[agent.model]
@models = "thincdialog.BiEncoder.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = "wide"

[training]
max_stepz = 3
"""


@pytest.fixture(scope="module")
def readme(root):
    return (root / "README.md").read_text(encoding="utf8")


def blocks(text, language):
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for name, block in found if name == language]


def python(words, folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs a command line in a folder of its own: gives the exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("THINCDIALOG_CONFIG_OVERRIDES", raising=False)

    def run_command(command):
        words = shlex.split(command.replace("\\\n", " "))
        assert words[:3] == ["python", "-m", "thincdialog"]
        code = main(words[3:])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run_command


def test_readme_own_layer_and_teacher_train(readme, tmp_path):
    """In a process of its own, since other tests register a layer of this name."""
    code = next(block for block in blocks(readme, "python") if "# mine.py" in block)
    config = next(block for block in blocks(readme, "ini") if "# mine.cfg" in block)
    (tmp_path / "mine.py").write_text(code)
    (tmp_path / "mine.cfg").write_text(config)
    words = shlex.split(next(block for block in blocks(readme, "") if "--code mine.py" in block))
    done = python(words[1:], tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "output" / "mine" / "model-best" / "weights.npy").is_file()
    assert "1.000" in done.stdout


def test_readme_shows_the_mistakes_as_they_are_printed(readme, run, tmp_path):
    (tmp_path / "my.cfg").write_text(MY_CFG)
    code, _, err = run("python -m thincdialog train my.cfg")
    # The path of the package depends on where it is installed.
    shown = re.sub(r"\([^()]*(thincdialog/models)", r"(\1", err)
    assert code == 1 and shown in blocks(readme, "")


def test_readme_table_of_commands_is_complete(readme):
    assert len(COMMANDS) == 21
    for name in COMMANDS:
        assert f"`{name}" in readme, name


def test_readme_names_every_shipped_config(readme, root):
    for path in (root / "configs").glob("*.cfg"):
        assert f"`{path.name}`" in readme


@pytest.mark.slow
def test_readme_first_five_minutes(readme, root, run, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    (tmp_path / "configs").symlink_to(root / "configs")
    lines = next(block for block in blocks(readme, "") if "thincdialog chat output" in block)
    train = "python -m thincdialog train configs/quickstart.cfg --output output/quickstart"
    for command in [train, *lines.splitlines()]:
        code, _, err = run(command)
        assert code == 0, (command, err)
    (tmp_path / "short.py").write_text(blocks(readme, "python")[0])
    assert python(["short.py"], tmp_path).returncode == 0
