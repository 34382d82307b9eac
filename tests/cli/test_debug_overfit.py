"""`debug overfit` as a user runs it."""

import json

RUN = "debug overfit a.cfg --training.optimizer.learn_rate"


def test_debug_overfit_verdict_and_exit_code(run_small, tmp_path):
    code, out, err = run_small(f"{RUN} 0.02")
    assert code == 0
    assert err == "✔ The model has memorised the batch of 16 examples\n"
    assert out.splitlines()[0].split() == ["loss", "right", "replies"]
    assert out.splitlines()[3].endswith("100.0%")
    code, out, _ = run_small(f"{RUN} 0.02 --json")
    found = json.loads(out)
    assert code == 0 and found["is_memorised"] is True and found["examples"] == 16
    assert len(found["losses"]) == found["steps"] + 1
    code, out, err = run_small(f"{RUN} 1e-9 --steps 3")
    assert code == 1
    assert err.startswith("✘ The model has not memorised the batch of 16 examples\n")
    assert "find-lr" in err
    assert [path.name for path in tmp_path.iterdir()] == ["a.cfg"]
