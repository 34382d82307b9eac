"""A custom runner from a --code file, of which the package knows nothing."""

import json
import shutil

import pytest

from tests.training.examples import RANKER, weights
from thincdialog.cli.main import main
from thincdialog.runs.run_log import read_log

CODE = """
from thincdialog.api import Alone, registry


@registry.runners("half_steps.v1")
def half_steps(share: float = 0.5):
    '''Makes two shorter steps whenever it is asked for one.

    share (float): Share of learn_rate in each step.
    '''
    return HalfSteps(share)


class HalfSteps(Alone):
    harmless = ("note",)

    def __init__(self, share):
        self.share, self.made = share, 0

    def problems(self, experiment):
        if self.share > 1:
            from thincdialog.api import Problem
            return [Problem("", f"[runner] share = {self.share}", "give 1 at most")]
        return []

    def begin(self, experiment, teacher, interruption, note):
        note("two half steps")
        super().begin(experiment, teacher, interruption, note)

    def take(self, step, room):
        optimizer, reports = self.experiment.optimizer, []
        optimizer.learn_rate *= self.share
        while len(reports) < min(2, room) and not self.epoch_done():
            reports += super().take(step + len(reports), 1)
        optimizer.learn_rate /= self.share
        self.made += len(reports)
        return reports

    def state(self):
        return {"world": super().state(), "made": self.made}

    def restore(self, state):
        self.made = state["made"]
        super().restore(state["world"])
"""
CONFIG = (
    RANKER.replace("n_samples", "eval_every_steps = 5\ncheckpoint_every_steps = 4\nn_samples")
    + '\n[runner]\n@runners = "half_steps.v1"\n'
)


@pytest.fixture
def command(tmp_path, tmp_path_factory, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # The whole session uses one path, because a process imports a file only once.
    code = tmp_path_factory.getbasetemp() / "half_steps.py"
    code.write_text(CODE)
    (tmp_path / "mine.cfg").write_text(CONFIG)

    def run(text, exit_code=0):
        assert main(f"{text} --code {code}".split()) == exit_code
        return capsys.readouterr()

    return run


def test_a_custom_runner_trains_evaluates_saves_and_resumes(command, tmp_path):
    shown = command("train mine.cfg -o whole")
    assert "two half steps\n" in shown.err
    found = read_log(tmp_path / "whole")
    assert [row["step"] for row in found] == [0, 5, 10, 13, 15, 20, 25, 26]
    assert {row["learn_rate"] for row in found[1:]} == {0.005}
    state = json.loads((tmp_path / "whole" / "checkpoint-26" / "state.json").read_text())
    assert state["loop"]["runner"]["made"] == 26
    scores = json.loads(command("evaluate whole/model-best --split dev --json -").out)
    assert scores["hits@1"] == max(row["score"] for row in found)
    # A run that stopped after a checkpoint resumes bit for bit.
    command("train mine.cfg -o out --training.max_steps 12")
    for step in (26, 13):
        shutil.rmtree(tmp_path / "out" / f"checkpoint-{step}", ignore_errors=True)
    assert "Resuming from out/checkpoint-12" in command("train mine.cfg -o out --resume").err
    assert weights(tmp_path / "out") == weights(tmp_path / "whole")
    assert read_log(tmp_path / "out")[-1]["loss_per_example"] == found[-1]["loss_per_example"]


def test_a_custom_runner_is_checked_like_built_in_ones(command):
    shown = command("train mine.cfg -o out --runner.shares 2", 1)
    assert "--runner.shares" in shown.err and "did you mean 'share'?" in shown.err
    shown = command("train mine.cfg --runner.share 2", 1)
    assert "[runner] share = 2 - give 1 at most" in shown.err
    command("train mine.cfg -o out --training.max_steps 2")
    shown = command("train mine.cfg -o out --resume --runner.share 0.25", 1)
    assert "[runner] share = 0.25, but out/checkpoint-2 has 0.5" in shown.err
