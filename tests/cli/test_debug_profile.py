"""`debug profile` as a user runs it."""

import json

from thincdialog.cli.main import main

from .small_config import CONFIG


def test_debug_profile_shows_a_table_and_json(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.cfg").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    assert main("debug profile a.cfg --steps 3 --tasks.coffee.n_dev 20".split()) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    header = ["ms", "a", "step", "calls", "forward", "backward", "self", "total", "share"]
    assert lines[0].split() == header
    shares = [float(line.split()[-1][:-1]) for line in lines[2 : lines.index("")]]
    assert shares == sorted(shares, reverse=True) and 97 < sum(shares) < 103
    assert "A step of 16 examples takes " in out and "% of a run." in out
    assert main("debug profile a.cfg --steps 3 --tasks.coffee.n_dev 20 --json".split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["steps"] == 3 and {"name", "own", "share"} < set(found["parts"][0])
    assert [path.name for path in tmp_path.iterdir()] == ["a.cfg"]
