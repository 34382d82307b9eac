"""Completion: the words that argcomplete offers, and how each shell gets them."""

import io
import os
import shutil
import subprocess
import sys

import argcomplete
import pytest

from thincdialog.cli.completion import complete

SETTINGS = """
[tasks.drinks]
@teachers = "thincdialog.Conversations.v1"
label_speaker = "second"

[tasks.drinks.mutators.*.flatten]
@mutators = "thincdialog.Flatten.v1"
context_length = 3

[agent.model]
width = 3
"""
# A command line, and the possible completions of its last word.
LINES = {
    "tr": "train",
    "eva": "eval evaluate",
    "debug d": "data diff-config",
    "init ": "config fill-config",
    "eval --spl": "--split",
    "debug diff-config --com": "--compare-to",
    "display-data --split ": "dev test train",
    "convert a b --to ": "conversations jsonl parlai",
    "convert a b --from s": "sgd sharegpt slack snips speaker-lines",
    "convert a b --drop ": "history labels",
    "plot run --against ": "epoch examples seconds step",
    "init config --from quick": "quickstart",
    "find-function --list batch": "batchers",
    "train dr": "drinks.cfg drinks.jsonl",
    "train drinks.cfg --output fold": "folder/",
    "train --training.max_": "--training.max_epochs --training.max_seconds --training.max_steps",
    "train drinks.cfg --tasks.": "--tasks.drinks.label_speaker",
    "evaluate model --agent.model.w": "--agent.model.width",
    "train --paths.train drinks.j": "drinks.jsonl",
    "train --training.max_steps 3 drinks.cfg --resu": "--resume",
    "info --training.max_": "",
}
BASH = """
source ./script
complete -p thincdialog
COMP_LINE="thincdialog debug d" COMP_POINT=19
_python_argcomplete thincdialog
echo "${COMPREPLY[@]}"
"""
# Functions of zsh need a terminal, so these print their arguments.
ZSH = """
compdef() { echo compdef $@ }
_describe() { print -rl -- ${${(P)2}%%:*} }
source ./script
words=(thincdialog debug d) BUFFER="thincdialog debug d" CURSOR=19
_python_argcomplete
"""
FISH = (
    "source ./script; complete | string match -q '*thincdialog*'; complete -C 'thincdialog debug d'"
)
SHELLS = {"bash": ["bash", "-c", BASH], "zsh": ["zsh", "-f", "-c", ZSH],
          "fish": ["fish", "--no-config", "-c", FISH]}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "drinks.cfg").write_text(SETTINGS)
    (tmp_path / "drinks.jsonl").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.cfg").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", LINES)
def test_completion_of_command_lines(line, folder, monkeypatch):
    # It would use a file descriptor that a test may be using.
    monkeypatch.setattr(argcomplete.CompletionFinder, "_init_debug_stream", lambda self: None)
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    monkeypatch.setenv("_ARGCOMPLETE_IFS", "\n")
    monkeypatch.setenv("COMP_LINE", f"thincdialog {line}")
    monkeypatch.setenv("COMP_POINT", str(len(f"thincdialog {line}")))
    found = io.StringIO()
    with pytest.raises(SystemExit):
        complete(found)
    assert sorted(word.strip() for word in found.getvalue().split("\n")) == LINES[line].split(" ")


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_in_a_shell(shell, folder, run, monkeypatch):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    program = folder / "thincdialog"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m thincdialog "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    code, script, _ = run(f"completion {shell}")
    (folder / "script").write_text(script)
    done = subprocess.run(SHELLS[shell], capture_output=True, text=True, timeout=60)
    assert (code, done.stderr) == (0, "") or "compopt" in done.stderr
    assert {"data", "diff-config"} <= set(done.stdout.split())
    assert shell == "fish" or "_python_argcomplete thincdialog" in done.stdout
