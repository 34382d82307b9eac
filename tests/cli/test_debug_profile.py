"""`debug profile` as a user runs it."""

import json

import pytest

from thincdialog.cli.debug_profile import fitted


def test_debug_profile_shows_a_table_and_json(run_small, tmp_path):
    code, out, _ = run_small("debug profile a.cfg --steps 3 --tasks.coffee.n_dev 20")
    assert code == 0
    lines = out.splitlines()
    header = ["ms/step", "calls", "forward", "backward", "self", "total", "share"]
    assert lines[0].split() == header
    shares = [float(line.split()[-1][:-1]) for line in lines[2 : lines.index("")]]
    assert shares == sorted(shares, reverse=True) and 97 < sum(shares) < 103
    assert "A step of 16 examples takes " in out and "% of a run." in out
    code, out, _ = run_small("debug profile a.cfg --steps 3 --tasks.coffee.n_dev 20 --json")
    found = json.loads(out)
    assert code == 0 and found["steps"] == 3 and {"name", "own", "share"} < set(found["parts"][0])
    assert [path.name for path in tmp_path.iterdir()] == ["a.cfg"]


@pytest.mark.parametrize("columns", [72, 80, 200])
def test_debug_profile_fits_the_terminal(run_small, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, _ = run_small("debug profile a.cfg --steps 2 --tasks.coffee.n_dev 20")
    assert code == 0
    lines = out.splitlines()
    assert max(map(len, lines)) <= columns
    names = [line.split("  ")[0] for line in lines]
    assert ("candidate_encoder+context_encoder/bag_embed" in names) == (columns == 200)


@pytest.mark.parametrize(
    "name, room, shown",
    [
        ("context_encoder/relu", 20, "context_encoder/relu"),
        ("candidate_encoder+context_encoder/bag_embed", 30, "candidate_encoder.../bag_embed"),
        ("context_encoder/bag_embed>>dropout>>linear 2", 30, "context.../bag_embed>>dro... 2"),
        ("context_encoder/linear 12", 20, "context.../linear 12"),
        ("residual(relu>>linear>>dropout) 2", 20, "residual(relu>>... 2"),
    ],
)
def test_debug_profile_shortened_names_stay_distinct(name, room, shown):
    assert fitted(name, room) == shown


@pytest.mark.gpu
def test_debug_profile_on_a_gpu_shows_times_of_the_host(run_small):
    code, out, _ = run_small("debug profile a.cfg --steps 2 --gpu-id 0 --tasks.coffee.n_dev 20")
    assert code == 0 and "\n(wait for the GPU) " in out
    assert "These are times of the host. The GPU computes at the same time" in out
