"""`debug profile` as a user runs it."""

import json


def test_debug_profile_shows_a_table_and_json(run_small, tmp_path):
    code, out, _ = run_small("debug profile a.cfg --steps 3 --tasks.coffee.n_dev 20")
    assert code == 0
    lines = out.splitlines()
    header = ["ms", "a", "step", "calls", "forward", "backward", "self", "total", "share"]
    assert lines[0].split() == header
    shares = [float(line.split()[-1][:-1]) for line in lines[2 : lines.index("")]]
    assert shares == sorted(shares, reverse=True) and 97 < sum(shares) < 103
    assert "A step of 16 examples takes " in out and "% of a run." in out
    code, out, _ = run_small("debug profile a.cfg --steps 3 --tasks.coffee.n_dev 20 --json")
    found = json.loads(out)
    assert code == 0 and found["steps"] == 3 and {"name", "own", "share"} < set(found["parts"][0])
    assert [path.name for path in tmp_path.iterdir()] == ["a.cfg"]
