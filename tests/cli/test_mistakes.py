"""What people get wrong in configs and command lines: each has one message that says where
it is and what to do, and nothing is written."""

import os
import re
import subprocess
import sys

import pytest

from tests.cli.mistakes import CODE, CONFIG, MISTAKES, ODD, TALK, TWICE
from thincdialog.cli.main import main


@pytest.fixture
def folder(tmp_path, tmp_path_factory, monkeypatch):
    """Where the user is: a config, data, code."""
    for name, content in {
        "my.cfg": CONFIG,
        "talk.jsonl": TALK * 4,
        "bad.jsonl": TALK + TALK.replace('"hi"', "3"),
        "code.py": CODE,
        "twice.py": TWICE.replace("Layer.v1", "Layer.v2"),
    }.items():
        (tmp_path / name).write_text(content)
    # One file for all tests: it is imported once in a process.
    odd = tmp_path_factory.getbasetemp() / "odd.py"
    odd.write_text(ODD)
    (tmp_path / "odd.py").symlink_to(odd)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("THINCDIALOG_CONFIG_OVERRIDES", raising=False)
    return tmp_path


def tree(folder):
    return sorted(str(path) for path in folder.rglob("*") if "__pycache__" not in str(path))


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_has_one_message_and_nothing_is_written(folder, capsys, name):
    old, new, arguments, code, where, words = MISTAKES[name]
    if old:
        assert CONFIG.count(old) == 1
        (folder / "my.cfg").write_text(CONFIG.replace(old, new))
    before = tree(folder)
    assert main(["train", "my.cfg", "-o", "out", *arguments.split()]) == code
    shown = capsys.readouterr()
    assert tree(folder) == before and shown.out == "" and "Traceback" not in shown.err
    message = shown.err.strip().splitlines()
    if where is not None and "my.cfg" in message[0]:
        assert message[0] == "✘ 1 problem in my.cfg" and len(message) == 3
        assert message[2] == "ℹ Nothing was written."
        message = message[1:2]
    elif code == 2:
        message = [line for line in message if "error:" in line]
    text = " ".join(message).removeprefix("✘ ").strip()
    lines = (folder / "my.cfg").read_text().splitlines()
    for start in (where or "").split("|"):
        if start.startswith("="):
            places = [n for n, line in enumerate(lines, 1) if line.startswith(start[1:])]
            start = f"my.cfg:{places[0] if places else '?'}  "
        if text.startswith(start):
            break
    else:
        pytest.fail(f"points elsewhere than {where}: {text}")
    for word in words:
        assert any(part in text for part in word.split("|")), text


@pytest.mark.parametrize(
    "arguments, shown",
    [
        ("--training.max-steps 3", "Ended: max_steps = 3 reached."),  # Dashes are fine.
        ("--training.max_steps=3", "Ended: max_steps = 3 reached."),
    ],
)
def test_what_looks_like_a_mistake_and_is_none(folder, capsys, arguments, shown):
    assert main(["train", "my.cfg", "-o", "out", *arguments.split()]) == 0
    assert shown in capsys.readouterr().out


def test_overrides_may_stand_before_the_config(folder, capsys):
    assert main(["train", "--training.max_steps", "3", "my.cfg", "-o", "out"]) == 0
    assert "max_steps = 3 reached" in capsys.readouterr().out


def test_a_setting_that_is_left_out_is_said_where_it_is_looked_for(folder, capsys):
    (folder / "my.cfg").write_text(CONFIG.replace("max_steps = 2\n", ""))
    assert main(["init", "fill-config", "my.cfg", "--diff"]) == 0
    assert "+ max_steps = 0" in capsys.readouterr().out.splitlines()


def test_many_mistakes_are_shown_at_once(folder, capsys):
    text = CONFIG.replace("max_steps", "max_stepz").replace("min_freq", "min_frek")
    (folder / "my.cfg").write_text(text.replace("width = 16", "width = .5"))
    assert main(["debug", "config", "my.cfg", "--training.patience", "x"]) == 1
    shown = capsys.readouterr().err.splitlines()
    assert [re.match(r"  (my.cfg|--\S+)", line)[1] for line in shown[1:5]] == [
        "my.cfg", "my.cfg", "my.cfg", "--training.patience"
    ]  # fmt: skip


def test_mistakes_leave_no_traceback_in_a_process_of_their_own(folder):
    environment = {**os.environ, "NO_COLOR": "1"}
    command = [sys.executable, "-m", "thincdialog", "train", "my.cfg", "--training.max_stepz", "1"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "✘ 1 problem in my.cfg",
        "  --training.max_stepz  [training] has no setting 'max_stepz' - did you mean 'max_steps'?",
        "ℹ Nothing was written.",
    ]
