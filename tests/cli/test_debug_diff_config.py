"""`debug diff-config` as a user runs it."""

import json
import sys

import pytest

from tests.training.examples import Terminal

CONFIG = """[tasks.coffee]
@teachers = "thincdialog.CoffeeOrder.v1"
n_train = 30

[agent]
@agents = "thincdialog.MostFrequent.v1"

[training]
patience = 3
"""
SHOWN = """+ [tasks.coffee]
+ @teachers = "thincdialog.CoffeeOrder.v1"
- n_train = 3000
+ n_train = 30

+ [agent]
+ @agents = "thincdialog.MostFrequent.v1"

  [training]
- patience = 0
+ patience = 3
"""


@pytest.fixture
def diff(run, tmp_path, monkeypatch):
    (tmp_path / "a.cfg").write_text(CONFIG)
    (tmp_path / "b.cfg").write_text(CONFIG.replace("n_train = 30", "n_train = 40"))
    monkeypatch.chdir(tmp_path)
    return lambda words: run(f"debug diff-config {words}")


def test_debug_diff_config_shows_only_what_differs(diff):
    code, out, err = diff("a.cfg")
    assert code == 0
    assert out == SHOWN
    assert err == "ℹ Compared to the defaults: 2 changed, 2 added\n"


def test_debug_diff_config_with_another(diff):
    code, out, err = diff("a.cfg --compare-to b.cfg")
    assert (code, out) == (0, "  [tasks.coffee]\n- n_train = 40\n+ n_train = 30\n")
    code, out, _ = diff("a.cfg --compare-to b.cfg --json --training.patience 5")
    changed = {"kind": "changed", "section": "tasks.coffee", "key": "n_train"}
    assert json.loads(out) == [
        {**changed, "old": "40", "new": "30"},
        {"section": "training", "key": "patience", "kind": "changed", "old": "3", "new": "5"},
    ]
    assert diff("a.cfg --compare-to a.cfg") == (0, "", "✔ a.cfg does not differ from a.cfg\n")
    code, out, err = diff("a.cfg --compare-to none.cfg")
    assert (code, out) == (1, "") and "there is no file 'none.cfg'" in err


def test_debug_diff_config_has_colour_on_a_terminal(diff, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    diff("a.cfg")
    assert "\x1b[31m- patience = 0\x1b[0m\n" in sys.stdout.getvalue()
    assert "\x1b[32m+ patience = 3\x1b[0m\n" in sys.stdout.getvalue()
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    diff("a.cfg")
    assert "\x1b" not in sys.stdout.getvalue()
