"""Completion, as the shells themselves find it."""

import shutil
import subprocess

import pytest

from thincdialog.cli.completion import command_lines
from thincdialog.cli.completion_scripts import bash, fish, zsh
from thincdialog.cli.main import COMMANDS, main, make_parser

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
# A command line, and what its last word can become.
LINES = {
    "tr": ["train"],
    "eva": ["eval", "evaluate"],
    "debug d": ["data", "diff-config"],
    "init ": ["config", "fill-config"],
    "train --o": ["--output"],
    "eval --spl": ["--split"],
    "debug diff-config --com": ["--compare-to"],
    "display-data --split ": ["dev", "test", "train"],
    "completion ": ["bash", "fish", "zsh"],
    "convert a b --to ": [
        *("babi", "conversations", "csv", "fbdialog", "jsonl", "parlai", "parlai-conversations"),
        "tsv",
    ],
    "convert a b --from s": ["sgd", "sharegpt"],
    "convert a b --from parlai-": ["parlai-conversations"],
    "convert a b --label-speaker ": ["both", "first", "second"],
    "convert a b --drop ": ["blanks", "history", "labels"],
    "plot run --against ": ["epoch", "examples", "seconds", "step"],
    "compare a b --split t": ["test", "train"],
    "debug data a.cfg --split ": ["dev", "test", "train"],
    "init config --from quick": ["quickstart"],
    "find-function --list batch": ["batchers"],
    "find-function -r lo": ["loggers", "losses"],
    "train dr": ["drinks.cfg", "drinks.jsonl"],
    "train drinks.cfg --output fold": ["folder of mine"],
    "train --training.max_": [
        "--training.max_epochs",
        "--training.max_seconds",
        "--training.max_steps",
    ],
    "train drinks.cfg --tasks.": ["--tasks.drinks.label_speaker"],
    "evaluate model --agent.model.w": ["--agent.model.width"],
    "train --paths.train drinks.j": ["drinks.jsonl"],
    "info --training.max_": [],
    "find-lr --steps ": [],
    "nonsense ": [],
}
BASH = """
source ./script
COMP_WORDS=(thincdialog {words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_thincdialog
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# What zsh's completion would be given: the candidates, before it picks those that match.
ZSH = """
compdef() {{}}
_files() {{ print -rl -- *(N) }}
compadd() {{ shift; print -rl -- $@ }}
_describe() {{ [[ $1 == -o ]] && shift; print -rl -- ${{${{(P)2}}%%:*}} }}
source ./script
words=(thincdialog {words})
CURRENT=$#words
_thincdialog
"""


def completions(shell, line, folder):
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    if shell == "fish":
        command = ["--no-config", "-c", f"source ./script; complete -C 'thincdialog {line}'"]
    else:
        command = ["-c", (BASH if shell == "bash" else ZSH).format(words=quoted)]
        command = command if shell == "bash" else ["-f", *command]
    done = subprocess.run([shell, *command], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.stderr == "" or "compopt" in done.stderr
    found = {row.split("\t")[0].rstrip("/") for row in done.stdout.splitlines()} - {""}
    if shell == "zsh":
        found = {name for name in found if name.startswith(words[-1])}
    return sorted(found)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_of_command_lines(shell, tmp_path, capsys):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert main(["completion", shell]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "drinks.cfg").write_text(SETTINGS)
    (tmp_path / "drinks.jsonl").write_text("")
    (tmp_path / "folder of mine").mkdir()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.cfg").write_text(SETTINGS)
    found = {line: completions(shell, line, tmp_path) for line in LINES}
    assert found == LINES


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert name in script and all(alias in script for alias in command.aliases)
    assert "--training.max_steps" in script


@pytest.mark.parametrize("write", [bash, zsh, fish])
def test_completion_has_every_choice_of_every_option(write):
    script = write(command_lines(), [])
    for name in COMMANDS:
        for action in make_parser(name)._actions:
            if action.choices:
                assert " ".join(action.choices) in script, (name, action.option_strings)


def test_completion_needs_a_known_shell(capsys):
    assert main(["completion", "powershell"]) == 2
    assert "invalid choice: 'powershell'" in capsys.readouterr().err
