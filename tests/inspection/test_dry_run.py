"""A dry run does everything up to the first step, and writes nothing."""

import io
import tracemalloc

import pytest

from tests.training.examples import RANKER, quietly_train
from tests.training.two_tasks import SIZES, TWO_TASKS
from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import DialogError, dry_run, find_lr, registry
from thincdialog.cli.main import main


def run_dry(config=RANKER, output=None, overrides=None, **options):
    return dry_run(config, output=output, overrides=overrides, stderr=io.StringIO(), **options)


def test_dry_run_counts_are_those_of_training(tmp_path):
    found = run_dry()
    # 34 dialogues of the seed have 201 turns: 13 batches of 16 per epoch.
    assert found.examples["coffee"]["train"] == 201
    assert (found.step_examples, found.steps_per_epoch, found.total_steps) == (16, 13, 26)
    result, _ = quietly_train(output=tmp_path)
    assert found.n_parameters == result.n_parameters
    for split in ("dev", "test"):
        assert found.examples["coffee"][split] == result.scores[split]["examples"]
    assert found.loss == find_lr(RANKER, steps=10, stderr=io.StringIO()).losses[0]
    assert found.memory["weights"] >= 4 * found.n_parameters
    assert found.memory["optimizer"] == 3 * found.memory["weights"]
    assert found.memory["batch"] > 16 * 16 * 4


def test_dry_run_of_several_tasks_and_of_an_agent_without_weights():
    found = run_dry(TWO_TASKS)
    assert {name: counts["train"] for name, counts in found.examples.items()} == SIZES
    assert any("/" in name for name in found.dev)
    weightless = RANKER[: RANKER.index("[tokenizer]")] + (
        '[agent]\n@agents = "thincdialog.MostFrequent.v1"\n\n[training]\nscore = "hits@1"\n'
    )
    found = run_dry(weightless)
    assert found.n_parameters == 0 and found.loss is None
    assert found.examples["coffee"]["train"] == 201 and "hits@1" in found.dev


BASELINE = RANKER[RANKER.index("[agent]") : RANKER.index("[world]")]
BASELINE = BASELINE.replace("[agent", "[baselines.other")


@pytest.mark.parametrize(
    "config, overrides",
    [
        (RANKER, {"training.max_stepz": 1}),
        (RANKER, {"training.score": "hits@2"}),
        (RANKER, {"tasks.coffee.@teachers": "thincdialog.Conversations.v1"}),
        (RANKER, {"agent.candidates": "fixed", "agent.fixed_candidates": "none.txt"}),
        (RANKER.replace('@tokenizers = "thincdialog.Words.v1"', ""), {}),
        (RANKER + BASELINE, {}),
        (RANKER, {"system.gpu_id": 99}),
    ],
)
def test_dry_run_errors_are_those_of_training(config, overrides):
    with pytest.raises(DialogError) as wanted:
        quietly_train(config, **overrides)
    with pytest.raises(type(wanted.value)) as found:
        run_dry(config, overrides=overrides)
    assert str(found.value) == str(wanted.value)


@registry.agents("tests.dry_run.Idle.v1")
class IdleAgent(RankerAgent):
    def read(self, batch):
        return None


def test_dry_run_names_the_code_that_learns_nothing():
    config = RANKER.replace('"thincdialog.Ranker.v1"', '"tests.dry_run.Idle.v1"')
    with pytest.raises(DialogError, match="found nothing to learn from") as wanted:
        quietly_train(config)
    with pytest.raises(DialogError) as found:
        run_dry(config)
    assert str(found.value) == str(wanted.value)


def test_dry_run_that_fails_stops_tracing_memory(monkeypatch):
    def fail(self, batch):
        raise DialogError("out of coffee")

    monkeypatch.setattr(RankerAgent, "learn", fail)
    with pytest.raises(DialogError, match="out of coffee"):
        run_dry()
    assert not tracemalloc.is_tracing()


def test_dry_run_writes_nothing_but_looks_at_the_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.cfg").write_text(RANKER)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    assert main("train a.cfg --dry-run --output new".split()) == 0
    shown = capsys.readouterr()
    assert ["coffee", "201"] == shown.out.splitlines()[2].split()[:2]
    assert ["steps", "per", "epoch", "about", "13"] in [x.split() for x in shown.out.splitlines()]
    assert shown.err == "✔ Training can begin. Nothing was written.\n"
    assert main("train a.cfg --dry-run --output full".split()) == 1
    assert "full  is not empty" in capsys.readouterr().err
    assert main("train a.cfg --dry-run --output full --force".split()) == 0
    # Without --output it is that of training: output/a.
    assert main("train a.cfg --dry-run --resume".split()) == 0
    assert main("train a.cfg --dry-run --no-output".split()) == 0
    assert sorted(tmp_path.rglob("*")) == before
