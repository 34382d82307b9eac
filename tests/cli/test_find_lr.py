"""`find-lr` as a user runs it."""

import json
import sys

import pytest


def test_find_lr_prints_json_and_writes_nothing(run_small, tmp_path):
    code, out, err = run_small("find-lr a.cfg --steps 30 --json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert len(found["losses"]) == 30 and 1e-5 < found["suggestion"] < 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.cfg"]


def test_find_lr_without_plotille_prints_a_table(run_small, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotille", None)
    code, out, err = run_small("find-lr a.cfg --steps 30")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split() == ["learn_rate", "loss", "smoothed"]
    assert lines[2].split()[0] == "1e-06" and lines[21].split()[0] == "1"
    assert any(line.startswith("Suggestion: --training.optimizer.learn_rate ") for line in lines)


def test_find_lr_draws_a_curve(run_small):
    pytest.importorskip("plotille", reason="needs the extra 'plot'")
    code, out, _ = run_small("find-lr a.cfg --steps 30 --start 1e-4")
    assert code == 0 and "learn_rate\n" in out and "1e-04" in out
    assert any("\u2801" <= letter <= "\u28ff" for letter in out)
    assert max(map(len, out.splitlines()[:15])) <= 80


@pytest.mark.slow
def test_find_lr_draws_a_picture(run_small, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra 'plot'")
    code, _, err = run_small("find-lr a.cfg --steps 10 --png rates.png")
    assert code == 0 and err.endswith("Wrote rates.png\n")
    assert (tmp_path / "rates.png").read_bytes().startswith(b"\x89PNG")
    code, _, err = run_small("find-lr a.cfg --steps 10 --png rates.png")
    assert code == 1 and "rates.png  already exists" in err
    assert run_small("find-lr a.cfg --steps 10 --png new/rates.png")[0] == 0
    assert (tmp_path / "new" / "rates.png").is_file()
    code, _, err = run_small("find-lr a.cfg --steps 10 --png rates.png/rates.png")
    assert code == 1 and "rates.png/rates.png  cannot be written" in err


def test_find_lr_names_the_extra_for_pictures(run_small, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, _, err = run_small("find-lr a.cfg --steps 10 --png rates.png")
    assert code == 1 and "pip install 'thincdialog[plot]'" in err
