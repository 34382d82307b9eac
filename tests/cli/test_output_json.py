"""With --json, stdout contains JSON and nothing else; all messages go to stderr."""

import json
from pathlib import Path

import pytest

from thincdialog.cli.main import COMMANDS, make_parser

from .conftest import SMALL


@pytest.fixture(autouse=True)
def in_folder(runs, monkeypatch):
    monkeypatch.chdir(runs)


def test_json_of_train(run, tmp_path):
    code, out, err = run(f"train quickstart.cfg --json --output {tmp_path}/run {SMALL}")
    found = json.loads(out)
    assert (code, found["stopped_because"]) == (0, "max_epochs = 2 reached")
    assert set(found["scores"]) == {"dev", "test"} and "most_frequent" in found["baselines"]
    assert 0 <= found["scores"]["test"]["hits@1"] <= 1
    assert list(found["samples"][0][0]) == ["message", "reply"]
    # The table of training counts as progress here.
    assert f"Saved {tmp_path}/run/model-best" in err and "loss" in err


def test_json_of_problems(run):
    code, out, err = run("debug config bad.cfg --json --training.max_stepz 3")
    found = json.loads(out)
    assert (code, found["config"], len(found["problems"])) == (1, "bad.cfg", 2)
    lines = Path("bad.cfg").read_text().split("\n")
    by_file = {problem["file"]: problem for problem in found["problems"]}
    assert by_file["bad.cfg"] == {
        "file": "bad.cfg",
        "line": next(n for n, line in enumerate(lines, 1) if line.startswith("max_epokhs")),
        "option": None,
        "section": "training",
        "text": "[training] has no setting 'max_epokhs'",
        "hint": "did you mean 'max_epochs'?",
    }
    assert by_file[None]["option"] == "--training.max_stepz"
    code, out, err = run("debug config quickstart.cfg --json")
    found = json.loads(out)
    assert (code, found["problems"]) == (0, [])
    functions = {row["section"]: row["function"] for row in found["functions"]}
    assert functions["agent"] == "thincdialog.Ranker.v1"


# A command, and a check of its JSON.
TABLES = {
    "debug data quickstart.cfg --json --tasks.coffee.n_train 5": lambda found: (
        found["warnings"][0]["check"] == "size" and found["splits"][0]["split"] == "train"
    ),
    "find-function --list --json": lambda found: (
        {row["registry"]: row["functions"] for row in found}["worlds"] >= 3
    ),
    "find-function Adam.v1 --json": lambda found: (
        found[0]["registry"] == "optimizers" and "learn_rate" in found[0]["parameters"]
    ),
    "info --json": lambda found: found["thinc"].startswith("8."),
    "info 0.01/model-best --json": lambda found: (
        found["agent"] == "thincdialog.Ranker.v1" and "agent.json" in found["files"]
    ),
    "init config --list --json": lambda found: "quickstart" in [row["name"] for row in found],
}


@pytest.mark.parametrize("command", TABLES)
def test_json_of_tables(run, command):
    code, out, _ = run(command)
    assert code == 0
    assert TABLES[command](json.loads(out, parse_constant=pytest.fail))


def test_json_of_conversations_is_one_object_a_line(run):
    code, out, err = run("dm 0.01/model-best -n 1 --jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and len(rows) >= 3 and err.startswith("ℹ ")
    assert rows[0]["conversation"] == 0 and rows[0]["reply"]["text"]
    assert rows[0]["message"]["eval_labels"]


def test_json_is_an_option_wherever_a_table_is_shown():
    # These chat, draw, or write files.
    without = {"chat", "plot", "convert", "predict", "init fill-config", "completion",
               "distill", "serve", "chats"}  # fmt: skip
    for name in set(COMMANDS) - without:
        assert "--json" in make_parser(name).format_usage(), name  # --json or --jsonl.
