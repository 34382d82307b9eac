"""`sweep` as a user runs it."""

import json

import pytest

from thincdialog.cli.sweep import _split

SWEEP = (
    "sweep a.cfg --over training.optimizer.learn_rate=0.001,0.05 -o out --training.max_steps 4 "
    "--tasks.coffee.n_dev 10 --tasks.coffee.n_test 10"
)


@pytest.mark.slow
def test_sweep_shows_a_table_and_the_command_to_train_the_best(run_small):
    code, out, err = run_small(SWEEP)
    assert code == 0
    lines = out.splitlines()
    assert lines[1].split()[0] == "run" and lines[1].split()[1] == "learn_rate"
    assert {line.split()[0] for line in lines[3:5]} == {"learn_rate=0.001", "learn_rate=0.05"}
    scores = [float(line.split()[2]) for line in lines[3:5]]
    assert scores == sorted(scores, reverse=True)
    best = lines[3].split()[0]
    assert f"Best: out/{best}. To train it separately:" in lines
    assert "Run 2 of 2: learn_rate=0.05" in err and "Run 2" not in out
    command = lines[-1].strip()
    prefix = "python -m thincdialog "
    assert command.startswith(prefix)
    assert run_small(command[len(prefix) :])[0] == 0
    code, out, err = run_small(SWEEP + " --json")
    found = json.loads(out)
    assert code == 0 and found["best"] == best and "Run " not in err
    assert [r["state"] for r in found["runs"]] == ["finished", "finished"]
    assert [r["score"] for r in found["results"]] == pytest.approx(scores, abs=1e-4)


@pytest.mark.parametrize(
    "over, code, said",
    [
        ("training.patience", 2, "key=v1,v2"),
        ("training.patience=1 --over training.patience=2", 2, "given twice"),
        ("training.patiense=1 --over training.max_epochs=x", 1, "did you mean 'patience'?"),
        ("training.patiense=1 --over training.max_epochs=x", 1, "--over training.max_epochs  [tra"),
        ("training.max_epochs=uniform:1..2", 1, "--random N"),
    ],
)
def test_sweep_mistakes(run_small, tmp_path, over, code, said):
    found, _, err = run_small(f"sweep a.cfg --over {over} -o out")
    assert found == code and said in err and not (tmp_path / "out").exists()


def test_sweep_fails_if_all_runs_do(run_small):
    command = SWEEP.replace("0.001,0.05", "1e30") + " --training.optimizer.grad_clip 0.0"
    code, out, err = run_small(command)
    assert (code, out) == (1, "")
    assert "✘ learn_rate=1e30 failed: " in err and "--retry" in err


@pytest.mark.parametrize(
    "text, values",
    [
        ("1,2", ["1", "2"]), ("[1, 2],[3]", ["[1, 2]", "[3]"]), ('"a,b", c', ['"a,b"', "c"]),
        ('{"a": [1, 2]}', ['{"a": [1, 2]}']), ("x", ["x"]),
    ],
)  # fmt: skip
def test_sweep_values_are_separated_by_commas(text, values):
    assert _split(text) == values
