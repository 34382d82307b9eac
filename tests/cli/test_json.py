"""With --json, stdout holds JSON and nothing else; all notes go to stderr."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from thincdialog.cli.main import COMMANDS, main, make_parser
from thincdialog.config import shipped_configs

SMALL = (
    "--tasks.coffee.n_train 40 --tasks.coffee.n_dev 10 --tasks.coffee.n_test 10 "
    "--training.max_epochs 2 --agent.model.encoder.width 8"
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a run in it, and what `train --json` printed."""
    folder = tmp_path_factory.mktemp("json")
    text = shipped_configs()["quickstart"].read_text()
    (folder / "quickstart.cfg").write_text(text)
    (folder / "bad.cfg").write_text(text.replace("max_epochs", "max_epokhs"))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("THINCDIALOG_CONFIG_OVERRIDES", raising=False)
        words = f"train quickstart.cfg --json --output run {SMALL}".split()
        done = subprocess.run(
            [sys.executable, "-m", "thincdialog", *words],
            cwd=folder,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    return folder, done


@pytest.fixture
def run(trained, monkeypatch, capsys):
    monkeypatch.chdir(trained[0])

    def run_command(command):
        code = main(command.split())
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run_command


def test_json_of_train(trained):
    found = json.loads(trained[1].stdout)
    assert found["stopped_because"] == "max_epochs = 2 reached"
    assert set(found["scores"]) == {"dev", "test"} and "most_frequent" in found["baselines"]
    assert 0 <= found["scores"]["test"]["hits@1"] <= 1
    assert [list(exchange) for exchange in found["samples"][0]][0] == ["message", "reply"]
    # The table of training is progress now.
    assert "Saved run/model-best" in trained[1].stderr and "loss" in trained[1].stderr


def test_json_of_problems(run):
    code, out, err = run("debug config bad.cfg --json --training.max_stepz 3")
    found = json.loads(out)
    assert (code, found["config"], len(found["problems"])) == (1, "bad.cfg", 2)
    lines = Path("bad.cfg").read_text().split("\n")
    number = next(n for n, line in enumerate(lines, 1) if line.startswith("max_epokhs"))
    by_file = {problem["file"]: problem for problem in found["problems"]}
    assert by_file["bad.cfg"] == {
        "file": "bad.cfg",
        "line": number,
        "option": None,
        "section": "training",
        "text": "[training] has no setting 'max_epokhs'",
        "hint": "did you mean 'max_epochs'?",
    }
    assert by_file[None]["option"] == "--training.max_stepz"
    code, out, err = run("debug config quickstart.cfg --json")
    found = json.loads(out)
    assert (code, found["problems"]) == (0, [])
    assert {"section": "agent", "function": "thincdialog.Ranker.v1"}.items() <= found["functions"][
        [row["section"] for row in found["functions"]].index("agent")
    ].items()


# A command, and what its JSON must hold.
TABLES = {
    "debug data quickstart.cfg --json --tasks.coffee.n_train 5": lambda found: (
        found["warnings"][0]["check"] == "size" and found["splits"][0]["split"] == "train"
    ),
    "debug diff-config quickstart.cfg --json": lambda found: len(found) > 3,
    "evaluate run/model-best --json": lambda found: True,
    "find-function --list --json": lambda found: (
        # Other tests register functions of their own.
        {row["registry"]: row["functions"] for row in found}["worlds"] >= 3
    ),
    "find-function --list batchers --json": lambda found: (
        "thincdialog.Fixed.v1" in [row["name"] for row in found]
    ),
    "find-function Adam.v1 --json": lambda found: (
        found[0]["registry"] == "optimizers" and "learn_rate" in found[0]["parameters"]
    ),
    "info --json": lambda found: found["thinc"].startswith("8."),
    "info run/model-best --json": lambda found: (
        found["agent"] == "thincdialog.Ranker.v1" and "agent.json" in found["files"]
    ),
    "init config --list --json": lambda found: "quickstart" in [row["name"] for row in found],
    "results run --json": lambda found: len(found) == 1,
}


@pytest.mark.parametrize("command", TABLES)
def test_json_of_tables(run, command):
    code, out, _ = run(command)
    assert code == 0
    assert TABLES[command](json.loads(out, parse_constant=pytest.fail))


@pytest.mark.parametrize(
    "command", ["dd quickstart.cfg -n 3 --jsonl", "dm run/model-best -n 1 --jsonl"]
)
def test_json_of_examples_is_one_object_a_line(run, command):
    code, out, err = run(command)
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and len(rows) >= 3 and err.startswith("ℹ ")
    if "reply" in rows[0]:
        assert rows[0]["conversation"] == 0 and rows[0]["reply"]["text"]
        assert rows[0]["message"]["eval_labels"]


# They talk, draw, or write files.
WITHOUT = {"chat", "plot", "convert", "init fill-config", "completion"}


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - WITHOUT))
def test_json_is_an_option_wherever_a_table_is_shown(name):
    options = make_parser(name).format_usage()
    assert "--json" in options  # or --jsonl


def test_json_output_of_help_goes_to_stdout(run):
    code, out, err = run("--help")
    assert (code, err) == (0, "") and "exit codes:\n  0   done" in out
    code, out, err = run("train --help")
    assert (code, err) == (0, "") and out.startswith("usage: ")
