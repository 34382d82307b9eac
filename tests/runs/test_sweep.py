"""Sweeps with real training on the generated task."""

import io
import json
import re

import pytest

from tests.training.examples import RANKER, quietly_train, weights
from thincdialog.api import ConfigError, DataError, DialogError, OutputError, registry
from thincdialog.runs.sweep import sweep

RATE = "training.optimizer.learn_rate"
SMALL = {"tasks.coffee.n_train": 20, "training.max_epochs": 0.0, "training.max_steps": 3}


def run_sweep(folder, over=None, config=RANKER, **options):
    options["overrides"] = {**SMALL, **options.get("overrides", {})}
    stream = options.setdefault("stderr", io.StringIO())
    found = sweep(config, over or {RATE: [0.001, 0.05]}, folder, **options)
    return found, stream.getvalue()


def test_sweep_trains_each_combination_as_if_alone(tmp_path):
    over = {RATE: [0.001, 0.05], "agent.model.encoder.width": ["8", "16"]}
    found, shown = run_sweep(tmp_path / "s", over)
    names = [run.name for run in found.runs]
    assert names == [f"learn_rate={r},width={w}" for r in (0.001, 0.05) for w in (8, 16)]
    assert {run.state for run in found.runs} == {"finished"}
    assert "Run 2 of 4: learn_rate=0.001,width=16\n" in shown
    scores = [result.score for result in found.results]
    assert len(scores) == 4 and scores == sorted(scores, reverse=True)
    assert found.best.name == found.results[0].name
    alone = {**SMALL, RATE: 0.05, "agent.model.encoder.width": 8}
    quietly_train(RANKER, tmp_path / "alone", **alone)
    assert weights(tmp_path / "alone") == weights(tmp_path / "s" / names[2])


def test_sweep_again_trains_only_what_is_new(tmp_path):
    first, _ = run_sweep(tmp_path, {RATE: [0.001]})
    second, shown = run_sweep(tmp_path, {RATE: [0.001, 0.05]})
    assert "learn_rate=0.001\n" not in shown and "Run 2 of 2: learn_rate=0.05\n" in shown
    third, shown = run_sweep(tmp_path, {RATE: [0.05, 0.001]})
    assert shown == "" and len(third.results) == 2
    assert [r.score for r in third.results] == [r.score for r in second.results]


@registry.callbacks("test_sweep.stop.v1")
def make_stop():
    def stop(info, agent):
        if info["step"] >= 2 and STOPS:
            raise STOPS.pop()

    return stop


STOPS = []
STOPPING = RANKER + '\n[training.callbacks.stop]\n@callbacks = "test_sweep.stop.v1"\n'
EVERY = {"training.eval_every_steps": 1}


@pytest.mark.slow
def test_sweep_continues_after_an_interrupt(tmp_path):
    whole, _ = run_sweep(tmp_path / "whole", config=STOPPING, overrides=EVERY)
    STOPS.append(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(tmp_path / "s", config=STOPPING, overrides=EVERY)
    known = json.loads((tmp_path / "s" / "sweep.json").read_text())["runs"]
    states = {name: run["state"] for name, run in known.items()}
    assert states == {"learn_rate=0.001": "begun", "learn_rate=0.05": "waiting"}
    again, _ = run_sweep(tmp_path / "s", config=STOPPING, overrides=EVERY)
    assert {run.state for run in again.runs} == {"finished"}
    for run in again.runs:
        assert weights(tmp_path / "s" / run.name) == weights(tmp_path / "whole" / run.name)


@pytest.mark.slow
def test_sweep_records_a_failed_run_and_continues(tmp_path):
    wild = {"training.optimizer.grad_clip": 0.0}
    found, shown = run_sweep(tmp_path, {RATE: [1e30, 0.01]}, overrides=wild)
    assert [run.state for run in found.runs] == ["failed", "finished"]
    assert "not finite" in found.runs[0].error and "Failed: " in shown
    assert found.best.name == "learn_rate=0.01" and len(found.results) == 1
    again, shown = run_sweep(tmp_path, {RATE: [1e30, 0.01]}, overrides=wild)
    assert shown == "" and again.runs[0].error == found.runs[0].error
    STOPS.append(RuntimeError("out of luck"))
    other, _ = run_sweep(tmp_path / "o", {RATE: [0.01]}, config=STOPPING, overrides=EVERY)
    told = r"tests/runs/test_sweep.py:\d+  in stop\(\): RuntimeError: out of luck"
    assert re.search(f"{told}$", other.runs[0].error) and other.best is None
    retried, _ = run_sweep(
        tmp_path / "o", {RATE: [0.01]}, config=STOPPING, overrides=EVERY, retry=True
    )
    assert retried.runs[0].state == "finished" and retried.runs[0].error is None


@pytest.mark.slow
def test_sweep_gives_the_users_code_to_worker_processes(tmp_path):
    code = tmp_path / "flat.py"
    code.write_text(
        "from thincdialog.api import registry\n\n"
        '@registry.schedules("tests.flat_in_sweep.v1")\n'
        "def flat(rate: float):\n    while True:\n        yield rate\n"
    )
    config = RANKER.replace("learn_rate = 0.01\n", "") + (
        '\n[training.optimizer.learn_rate]\n@schedules = "tests.flat_in_sweep.v1"\nrate = 0.01\n'
        '\n[runner]\n@runners = "thincdialog.Hogwild.v1"\nexecutor = "process"\n'
    )
    found, shown = run_sweep(tmp_path / "s", {"system.seed": [1]}, config=config, code=code)
    assert [run.state for run in found.runs] == ["finished"], shown


def test_sweep_finds_all_mistakes_before_it_trains(tmp_path):
    over = {"training.patience": [2, "many"], "training.max_stepz": [1], RATE: ["fast", 0.1]}
    with pytest.raises(ConfigError) as caught:
        run_sweep(tmp_path / "s", over)
    text = str(caught.value)
    assert "--over training.max_stepz  [training] has no setting 'max_stepz'" in text
    assert "did you mean 'max_steps'?" in text and "learn_rate" in text
    assert "--over training.patience  [training] 'patience' should be an integer" in text
    assert len(caught.value.problems) == 3
    assert not (tmp_path / "s").exists()
    with pytest.raises(ConfigError) as caught:
        run_sweep(tmp_path / "s", {RATE: [-1, 0.1, []], "agent.model.encoder.width": [0, 8]})
    text = str(caught.value)
    assert len(caught.value.problems) == 3
    named = f"--over {RATE}  [training.optimizer] 'learn_rate' of Adam.v1 should be"
    assert f"{named} 0 or more, got -1 - see thinc/optimizers.py:" in text
    assert f"{named} a list of one number or more, each 0 or more, got []" in text
    assert "'width' of thincdialog.BagEncoder.v1 should be 1 or more, got 0 - width (int): " in text
    with pytest.raises(ConfigError, match=rf"--over {RATE} .* should be 0 or more, got -0.1"):
        run_sweep(tmp_path / "s", {RATE: "uniform:-0.1..0.1"}, random=2)
    with pytest.raises(ConfigError, match="--over training.score .*cannot be compared"):
        run_sweep(tmp_path / "s", {"training.score": ["f1", "mrr"]})
    with pytest.raises(ConfigError, match="should be an integer"):
        run_sweep(tmp_path / "s", {"agent.history_size": "uniform:1..3"}, random=2)
    labelled = RANKER.replace("thincdialog.CoffeeOrder.v1", "thincdialog.Conversations.v1")
    for name in ("n_train", "n_dev", "n_test"):
        labelled = "\n".join(x for x in labelled.splitlines() if not x.startswith(name))
    missing = {"tasks.coffee.train": str(tmp_path / "none.jsonl")}
    with pytest.raises(DataError, match="none.jsonl"):
        sweep(labelled, {RATE: [0.1]}, tmp_path / "s", overrides=missing)
    assert not (tmp_path / "s").exists()


def test_sweep_refuses_a_folder_of_something_else(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="is not the folder of a sweep"):
        run_sweep(tmp_path)
    run_sweep(tmp_path / "s", {RATE: [0.01]})
    with pytest.raises(OutputError, match=r"other settings: training.max_steps \(was 3, is 4\)"):
        run_sweep(tmp_path / "s", {RATE: [0.01]}, overrides={"training.max_steps": 4})
    # The number of reader processes may change.
    run_sweep(tmp_path / "s", {RATE: [0.01]}, overrides={"loader.workers": 1})


def test_sweep_whose_state_is_damaged_says_how_to_continue(tmp_path):
    found, _ = run_sweep(tmp_path, {RATE: [0.01]})
    before = weights(tmp_path / found.best.name)
    for text in ("{", "[]", '{"runs": 3}', '{"runs": {"learn_rate=0.01": 3}}'):
        (tmp_path / "sweep.json").write_text(text)
        with pytest.raises(
            DialogError, match=r"sweep.json  is damaged: .* Write \{\"runs\": \{\}\}"
        ):
            run_sweep(tmp_path, {RATE: [0.01]})
    (tmp_path / "sweep.json").write_text('{"runs": {}}')
    again, shown = run_sweep(tmp_path, {RATE: [0.01]})
    assert again.runs[0].state == "finished" and "The run had already ended" in shown
    assert weights(tmp_path / found.best.name) == before


@pytest.mark.slow
def test_sweep_draws_runs_at_random_and_finds_them_again(tmp_path):
    over = {RATE: "log:1e-3..1e-1", "agent.model.encoder.depth": "int:0..1"}
    found, _ = run_sweep(tmp_path, over, random=2, seed=5)
    assert len(found.results) == 2
    more, shown = run_sweep(tmp_path, over, random=3, seed=5)
    assert [run.name for run in more.runs[:2]] == [run.name for run in found.runs]
    assert shown.count("\nRun ") == 1 and len(more.results) == 3
