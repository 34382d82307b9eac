"""What README.md says works as it stands."""

import os
import re
import shlex
import subprocess
import sys

import pytest

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


def run(command, folder):
    words = shlex.split(command.replace("\\\n", " "))
    assert words[0] == "python"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, *words[1:]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        encoding="utf8",
    )


def test_readme_own_layer_and_teacher_train(readme, tmp_path):
    code = next(block for block in blocks(readme, "python") if "# mine.py" in block)
    config = next(block for block in blocks(readme, "ini") if "# mine.cfg" in block)
    (tmp_path / "mine.py").write_text(code)
    (tmp_path / "mine.cfg").write_text(config)
    command = next(block for block in blocks(readme, "") if "--code mine.py" in block)
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "output" / "mine" / "model-best" / "weights.npy").is_file()
    assert "1.000" in done.stdout


def test_readme_shows_the_mistakes_as_they_are_printed(readme, tmp_path):
    (tmp_path / "my.cfg").write_text(MY_CFG)
    done = run("python -m thincdialog train my.cfg", tmp_path)
    assert done.returncode == 1
    # The path of the package depends on where it is installed.
    shown = re.sub(r"\([^()]*(thincdialog/models)", r"(\1", done.stderr)
    assert shown in blocks(readme, "")


def test_readme_table_of_commands_is_complete(readme):
    done = subprocess.run(
        [sys.executable, "-m", "thincdialog", "--help"], capture_output=True, text=True, check=True
    )
    names = re.findall(r"^  ([a-z-]+(?: [a-z-]+)?)(?:,|  )", done.stdout, re.MULTILINE)
    assert len(names) == 21
    for name in names:
        assert f"`{name}" in readme, name


def test_readme_names_every_shipped_config(readme, root):
    for path in (root / "configs").glob("*.cfg"):
        assert f"`{path.name}`" in readme


@pytest.mark.slow
def test_readme_first_five_minutes(readme, root, tmp_path):
    (tmp_path / "configs").symlink_to(root / "configs")
    lines = next(block for block in blocks(readme, "") if "thincdialog chat output" in block)
    train = "python -m thincdialog train configs/quickstart.cfg --output output/quickstart"
    for command in [train, *lines.splitlines()]:
        done = run(command, tmp_path)
        assert done.returncode == 0, (command, done.stderr)
    (tmp_path / "short.py").write_text(blocks(readme, "python")[0])
    assert run("python short.py", tmp_path).returncode == 0
