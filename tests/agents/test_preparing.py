# ruff: noqa: F811 - a fixture of another file.
"""Steps on a GPU whose batches a thread has prepared: the same as steps without it."""

import json
import threading

import numpy as np
import pytest

from tests.training.test_device_counts import (  # noqa: F401
    ENCODER,
    cupy,
    training,
    write_data,
)
from thincdialog.agents.model_agent import ModelAgent
from thincdialog.agents.preparing import Preparing
from thincdialog.agents.ranker import RankerAgent
from thincdialog.errors import DataError
from thincdialog.examples.batch import Batch
from thincdialog.examples.store import NO_LABEL
from thincdialog.registry import registry
from thincdialog.runners.alone import Alone
from thincdialog.worlds.batch_world import BatchWorld

pytestmark = pytest.mark.gpu
SMALL = {f"{ENCODER}.width": 16, "world.batcher.size": 16}
WORDS = {"@batchers": "thincdialog.Words.v1", "budget": 300}
CASES = {
    # What is left out of the texts is drawn for each batch; several batches make a step.
    "ranker": {
        **SMALL,
        f"{ENCODER}.token_dropout": 0.3,
        "training.accumulate_gradient": 3,
        "agent.candidates": "batch",
    },
    "inline": {**SMALL, "agent.candidates": "inline", "agent.ignore_bad_candidates": True},
    "intent": {"agent.class_weights": "balanced", "world.batcher.size": 16},
    "babi": {f"{ENCODER}.width": 16, "world.batcher": WORDS},
}


@pytest.fixture
def plans(monkeypatch):
    """Of each batch that was learnt, whether its plan was prepared."""
    found, planned = [], ModelAgent.planned

    def noting(self, batch):
        found.append(batch.prepared is not None and batch.prepared.draws == self.draws)
        return planned(self, batch)

    monkeypatch.setattr(ModelAgent, "planned", noting)
    return found


def reports(n, root, folder, name, **changes):
    with training(root, folder, name, n_rows=60, **changes) as step:
        return [
            (float(report.loss), float(report.gradient_norm), report.examples, report.counts)
            for report in (step() for _ in range(n))
        ]


@pytest.mark.parametrize("name", CASES)
def test_preparing_changes_no_bit(name, root, tmp_path, monkeypatch, plans):
    config, changes = {"inline": "quickstart"}.get(name, name), CASES[name]
    found = reports(6, root, tmp_path, config, **changes)
    n_prepared = sum(plans)
    assert n_prepared > len(plans) // 2
    plans.clear()
    monkeypatch.setattr(BatchWorld, "prepare_ahead", lambda self, n: None)
    assert reports(6, root, tmp_path, config, **changes) == found and not any(plans)


def test_preparing_takes_the_first_batch_of_an_epoch_too(root, tmp_path, plans):
    """On a second GPU, too, which is the current one of no new thread."""
    reports(7, root, tmp_path, "intent", gpu_id=1, **{"world.batcher.size": 12})
    assert plans == [True] * 7


@pytest.mark.parametrize("name, n", [("ranker", 1), ("ranker", 3), ("intent", 3), ("babi", 2)])
def test_preparing_all_steps_of_an_epoch_copy_each_microbatch_once(
    name,
    n,
    root,
    tmp_path,
    cupy,
):
    changes = {"world.batcher": {"@batchers": "thincdialog.Fixed.v1", "size": 16}}
    changes["training.accumulate_gradient"] = n
    with training(root, tmp_path, name, n_rows=4 * 16 * n, **changes) as step:
        for _ in range(4):
            step()
        for _ in range(9):  # More than two epochs.
            with cupy.counted() as counts:
                step()
            assert (counts.waits, counts.h2d) == (0, n), counts.shown("h2d")


@pytest.mark.parametrize("n", [1, 3])
def test_preparing_batches_with_some_labels_once(
    n,
    root,
    tmp_path,
    monkeypatch,
    cupy,
    plans,
):
    label_ids, prepare, prepared = Batch.label_ids.func, Preparing._prepare, []
    of_some = property(lambda batch: np.where(batch.rows % 4 == 0, NO_LABEL, label_ids(batch)))
    monkeypatch.setattr(Batch, "label_ids", of_some)

    def noting(self, draws, asked, batch):
        prepared.append(batch)
        return prepare(self, draws, asked, batch)

    monkeypatch.setattr(Preparing, "_prepare", noting)
    changes = {"world.batcher": {"@batchers": "thincdialog.Fixed.v1", "size": 24}}
    changes["training.accumulate_gradient"] = n
    found = reports(6, root, tmp_path, "intent", **changes)
    # The last one is ready for a step that nobody made.
    assert all(plans) and len(prepared) - len(plans) in (0, 1)
    assert len(set(map(id, prepared))) == len(prepared)
    assert 0 < sum(examples for _, _, examples, _ in found) < 24 * len(plans) * 0.8
    with training(root, tmp_path, "intent", n_rows=3 * 24 * n, **changes) as step:
        for _ in range(4):
            step()
        for _ in range(5):
            with cupy.counted() as counts:
                step()
            assert (counts.waits, counts.h2d) == (0, n), counts.shown("h2d")
    monkeypatch.setattr(BatchWorld, "prepare_ahead", lambda self, n: None)
    assert reports(6, root, tmp_path, "intent", **changes) == found


def test_preparing_leaves_the_current_device_and_copes_with_another(root, tmp_path, cupy):
    with training(root, tmp_path, "intent", gpu_id=1, n_rows=60) as step:
        for device in (0, 0, 1, 0, 0, 0, 0):
            with cupy.cuda.Device(device):
                assert step() is not None
                assert cupy.cuda.Device().id == device


def test_preparing_batches_without_labels_make_no_step(root, tmp_path, monkeypatch, plans):
    """Draws follow from the number of the step, which is another one then."""
    good, counted = RankerAgent._good_rows, []

    def none_of_the_third(self, batch):
        counted.append(batch.rows.tolist())
        seen = list(dict.fromkeys(map(tuple, counted)))
        return batch.rows[:0] if seen.index(tuple(batch.rows.tolist())) == 2 else good(self, batch)

    monkeypatch.setattr(RankerAgent, "_good_rows", none_of_the_third)
    changes = {**SMALL, f"{ENCODER}.token_dropout": 0.3}
    found = []
    for _ in range(2):
        counted.clear()
        with training(root, tmp_path, "ranker", n_rows=60, **changes) as step:
            made = [step() for _ in range(6)]
        found.append([None if each is None else float(each.loss) for each in made])
        monkeypatch.setattr(BatchWorld, "prepare_ahead", lambda self, n: None)
    assert found[0] == found[1] and found[0].count(None) == 1


def test_preparing_ends_with_the_run(root, tmp_path, monkeypatch):
    runners, begin = [], Alone.begin

    def noting(self, *args):
        runners.append(self)
        return begin(self, *args)

    monkeypatch.setattr(Alone, "begin", noting)
    with training(root, tmp_path, "intent", n_rows=60) as step:
        step()
        assert [each.name for each in threading.enumerate()].count("ahead") == 1
        runners[0].end()
        assert "ahead" not in [each.name for each in threading.enumerate()]


def test_preparing_nothing_of_an_agent_of_a_user(root, tmp_path, plans, monkeypatch):
    class Own(RankerAgent):
        def learn(self, batch):
            return super().learn(batch)

    Own.__module__ = "mine"
    monkeypatch.setitem(registry.agents.get_all(), "own.v1", Own)
    registry.agents("own.v1", func=Own)
    reports(3, root, tmp_path, "ranker", **{"agent.@agents": "own.v1", **SMALL})
    assert len(plans) == 3 and not any(plans)


def test_preparing_errors_of_a_batch_come_out_as_it_is_learnt(root, tmp_path, plans, monkeypatch):
    rows = map(json.loads, write_data(tmp_path, "ranker", n=60).read_text().splitlines())
    texts = list(dict.fromkeys(turn["text"] for row in rows for turn in row["turns"]))
    (tmp_path / "replies.txt").write_text("".join(f"{text}\n" for text in texts[:-1]))
    changes = {"agent.candidates": "fixed", "agent.fixed_candidates": str(tmp_path / "replies.txt")}
    said = []
    for _ in range(2):
        with pytest.raises(DataError, match="not among its fixed candidates") as error:
            reports(20, root, tmp_path, "ranker", **changes, **SMALL)
        said.append((str(error.value), len(plans)))
        plans.clear()
        monkeypatch.setattr(BatchWorld, "prepare_ahead", lambda self, n: None)
    assert said[0] == said[1] and said[0][1] > 1
