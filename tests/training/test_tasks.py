"""Runs on several tasks: every example once an epoch, in any world and batches."""

import json
from itertools import product

import pytest

from tests.processes import slow
from tests.training.examples import quietly_train, weights
from tests.training.two_tasks import N_EXAMPLES, SEEN, SIZES, TWO_TASKS, ids
from thincdialog.api import ConfigError, DataError, display_data, display_model, evaluate
from thincdialog.cli.main import main
from thincdialog.files.saved_model import BEST, LAST

WORLDS = ["BatchWorld", "DynamicBatchWorld"]
BATCHERS = {
    "Fixed": {"size": 4},
    "Batchsort": {"size": 4, "buffer": 3},
    "Words": {"budget": 30, "buffer": 2},
    "Padded": {"budget": 40},
}
EVERY = [(world, batcher) for world, batcher in product(WORLDS, BATCHERS)]


def changes(world, batcher):
    """Return overrides for the config's world, which it leaves to the defaults."""
    return {
        "world.@worlds": f"thincdialog.{world}.v1",
        "world.batcher.@batchers": f"thincdialog.{batcher}.v1",
        **{f"world.batcher.{name}": value for name, value in BATCHERS[batcher].items()},
    }


FIXED = changes("BatchWorld", "Fixed")


def run(output=None, config=TWO_TASKS, **overrides):
    SEEN.clear()
    return quietly_train(config, output, **overrides)[0]


def epochs(n_examples=N_EXAMPLES):
    seen = [name for batch in SEEN for name in batch]
    assert len(seen) % n_examples == 0
    return [seen[start : start + n_examples] for start in range(0, len(seen), n_examples)]


@pytest.mark.parametrize("streaming", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "world, batcher", [each if "Batchsort" in each else slow(*each) for each in EVERY]
)
def test_tasks_every_example_once_an_epoch(world, batcher, streaming, tmp_path):
    streams = {f"tasks.{name}.streaming": streaming for name in SIZES}
    setup = {**changes(world, batcher), **streams}
    result = run(tmp_path / "a", **setup)
    first, second = epochs()
    assert sorted(first) == sorted(second) == ids("train")
    assert first != second
    for split in ("dev", "test"):
        report = result.scores[split]
        assert report["examples"] == N_EXAMPLES
        assert {name: report[f"{name}/examples"] for name in SIZES} == SIZES
        mean = sum(report[f"{name}/hits@1"] for name in SIZES) / len(SIZES)
        assert report["macro/hits@1"] == pytest.approx(mean)
        micro = sum(report[f"{name}/hits@1"] * size for name, size in SIZES.items()) / N_EXAMPLES
        assert report["hits@1"] == pytest.approx(micro)
    meta = json.loads((tmp_path / "a" / LAST / "meta.json").read_text())
    found = [meta[name] for name in ("task", "epoch", "examples")]
    assert found == ["colours, drinks", 2.0, 2 * N_EXAMPLES]
    # The examples are the same in the batches of the config's world, and in others.
    for other in ({}, {"evaluation.world.batcher.size": 5}):
        assert evaluate(tmp_path / "a" / BEST, overrides=other) == result.scores["test"]
    batches = [list(batch) for batch in SEEN]
    run(tmp_path / "b", **setup)
    assert batches == SEEN and weights(tmp_path / "a") == weights(tmp_path / "b")
    run(**setup, system__seed=4, training__max_epochs=1.0)
    assert batches[: len(SEEN)] != SEEN and sorted(epochs()[0]) == ids("train")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Train a model on both tasks. Return its folder and the result of the run."""
    folder = tmp_path_factory.mktemp("tasks")
    return folder / BEST, run(folder, **FIXED, training__max_epochs=6.0)


def test_tasks_are_evaluated_each_with_its_own_sample_and_candidates_in_any_world(saved):
    path, result = saved
    own = changes("DynamicBatchWorld", "Words").items()
    own = {f"evaluation.{name}": value for name, value in own}
    assert evaluate(path, overrides=own) == result.scores["test"]
    report = evaluate(path, overrides={"evaluation.max_examples": 5})
    # Whole conversations, until there are 5 examples.
    assert report["drinks/examples"] == 5 and 5 <= report["colours/examples"] <= 8
    assert report["examples"] == report["drinks/examples"] + report["colours/examples"]
    one = {"tasks.drinks.splits": "train"}
    alone = evaluate(path, overrides=one)
    assert "drinks/examples" not in alone
    part = {name: value for name, value in result.scores["test"].items() if "colours/" in name}
    assert {name: alone[name] for name in part} == part
    assert alone["macro/hits@1"] == alone["hits@1"] == alone["colours/hits@1"]


@pytest.mark.parametrize("score", ["hits@1", "drinks/hits@1", "macro/loss"])
def test_tasks_any_score_can_be_optimised(score, tmp_path):
    result = run(tmp_path, training__score=score, training__eval_every_epochs=0.5)
    meta = json.loads((tmp_path / BEST / "meta.json").read_text())
    assert meta["step"] == result.best_step
    assert meta["dev"][score] == result.scores["dev"][score]


def test_tasks_an_unknown_score_is_explained_with_the_known_ones():
    with pytest.raises(ConfigError) as caught:
        run(training__score="color/hits@1")
    assert caught.value.problems[0].hint == "did you mean 'colours/hits@1'?"
    with pytest.raises(ConfigError, match="choose one of: accuracy, examples, f1, ") as caught:
        run(training__score="quality")
    hint = caught.value.problems[0].hint
    assert "drinks/" not in hint and hint.endswith("that of a task, such as colours/accuracy")


@pytest.mark.parametrize("weight", [2, 0])
def test_tasks_with_a_weight_but_no_training_data_are_named(weight):
    weights = {"mixture.weights.colours": 1, "mixture.weights.drinks": weight}
    _, shown = quietly_train(TWO_TASKS, tasks__drinks__splits="dev", training__max_epochs=1.0,
                             **weights)  # fmt: skip
    note = "[mixture.weights] drinks: no training data, so its weight has no effect\n"
    assert shown.count(note) == (1 if weight else 0)


def test_tasks_weights_hold_while_all_tasks_last():
    shares = {"mixture.weights.colours": 1, "mixture.weights.drinks": 2}
    run(**shares, **FIXED, training__max_epochs=1.0)
    (seen,) = epochs()
    assert sorted(seen) == ids("train")
    n_drinks = sum(name.startswith("drinks/") for name in seen[:18])
    assert 10 <= n_drinks <= 14, "two thirds of 18, except for conversations that continue"


def test_tasks_with_weight_0_are_not_shown_but_evaluated(tmp_path):
    none = {"mixture.weights.colours": 0, "mixture.weights.drinks": 1}
    result = run(tmp_path, **none, **FIXED, training__max_epochs=1.0)
    (seen,) = epochs(SIZES["drinks"])
    assert sorted(seen) == ids("train", ["drinks"])
    assert result.scores["test"]["colours/examples"] == SIZES["colours"]
    assert evaluate(tmp_path / BEST, split="train")["examples"] == N_EXAMPLES
    missing = {"tasks.drinks.splits": "dev test"}
    with pytest.raises(DataError, match=r"\[mixture.weights\]  are 0 for all .* \(colours\)"):
        run(**none, **missing)


def test_tasks_repeat_shows_the_small_one_again_until_all_were_shown(tmp_path):
    again = {"mixture.weights.colours": 1, "mixture.weights.drinks": 1, "mixture.repeat": True}
    run(tmp_path, **again, **FIXED, training__max_epochs=1.0)
    seen = [name for batch in SEEN for name in batch]
    assert set(seen) == set(ids("train"))
    assert all(seen.count(name) == 1 for name in ids("train", ["drinks"]))
    n_colours = sum(name.startswith("colours/") for name in seen)
    assert abs(n_colours - SIZES["drinks"]) <= 4, "a conversation has 4 turns at most"
    meta = json.loads((tmp_path / LAST / "meta.json").read_text())
    assert (meta["epoch"], meta["examples"]) == (1.0, len(seen))


def test_tasks_without_end_continue_until_the_others_end():
    endless = {"tasks.drinks.endless": True, "mixture.weights.colours": 1}
    run(**endless, **FIXED, mixture__weights__drinks=3, training__max_epochs=2.0)
    seen = [name for batch in SEEN for name in batch]
    colours = [name for name in seen if name.startswith("colours/")]
    assert sorted(colours) == sorted(2 * ids("train", ["colours"]))
    assert abs(len(seen) - 4 * len(colours)) <= 16
    both = {f"tasks.{name}.endless": True for name in SIZES}
    with pytest.raises(
        ConfigError, match="max_epochs cannot end training.*- set max_steps or max_se"
    ):
        run(**both)
    result = run(**both, training__max_steps=20)
    assert result.stopped_because == "max_steps = 20 reached" and len(SEEN) == 20


@pytest.mark.parametrize("world", WORLDS)
def test_tasks_in_batches_that_grow(world):
    grow = {"@schedules": "compounding.v1", "start": 1.0, "stop": 8.0, "compound": 1.5}
    setup = {"world.@worlds": f"thincdialog.{world}.v1", "world.batcher.size": grow}
    result = run(**setup, training__max_epochs=3.0)
    assert [sorted(epoch) for epoch in epochs()] == [ids("train")] * 3
    sizes = [len(batch) for batch in SEEN]
    # The integer part of 1.5 ** n; an evaluation between two batches does not count.
    assert sizes[:5] == [1, 1, 2, 3, 5] and max(sizes) == 8
    assert result.scores["test"]["examples"] == N_EXAMPLES


def test_tasks_a_split_that_only_one_task_has():
    result = run(tasks__drinks__splits="train dev", training__max_epochs=1.0)
    assert set(result.scores) == {"dev", "test"}
    assert result.scores["test"]["examples"] == SIZES["colours"]
    assert len(epochs()) == 1
    missing = {f"tasks.{name}.splits": "dev" for name in SIZES}
    with pytest.raises(DataError) as caught:
        run(**missing)
    assert str(caught.value) == (
        "[tasks]  none of them has train data (colours has: dev; drinks has: dev). "
        "Give it with --paths.train FILE."
    )


def test_tasks_baselines_learn_from_all_of_them_and_need_not_shorten_what_they_read():
    text = TWO_TASKS + '\n[baselines.frequent]\n@agents = "thincdialog.MostFrequent.v1"\n'
    batcher = {"@batchers": "thincdialog.Words.v1", "budget": 4, "oversize": "truncate"}
    result = run(config=text, world__batcher=batcher, training__max_epochs=1.0)
    assert [sorted(epoch) for epoch in epochs()] == [ids("train")]
    table = result.table()
    assert table[0][:4] == ["", "task", "agent", "hits@1"]
    rows = [row[:3] for row in table[1:]]
    parts, agents = ["colours", "drinks", "macro", "all"], ["this model", "frequent"]
    assert rows == [
        [split, part, agent] for split in ("dev", "test") for part in parts for agent in agents
    ]
    report = result.baselines["frequent"]["test"]
    assert (report["examples"], report["drinks/examples"]) == (N_EXAMPLES, SIZES["drinks"])


def test_tasks_are_displayed_mixed_and_played_in_turn(saved):
    path, result = saved
    for shuffle in (False, True):
        shown = display_data(TWO_TASKS, n_examples=0, shuffle=shuffle)
        names = [message["id"] for message, _ in shown]
        assert sorted(names) == ids("train")
        changed = [a.split("/")[0] != b.split("/")[0] for a, b in zip(names, names[1:])]
        assert sum(changed) > 10
    colours, drinks = {"red", "green", "blue", "amber", "pink"}, {"tea", "milk", "juice", "cocoa"}
    for conversations in (result.samples, display_model(path, n_conversations=3)):
        labels = [set(talk[0][0]["eval_labels"]) for talk in conversations]
        assert [label <= colours for label in labels] == [True, True, False]
        assert labels[2] <= drinks


def test_tasks_on_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.cfg").write_text(TWO_TASKS)
    assert main("train two.cfg -o out --training.max_epochs 4".split()) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    header = next(line for line in lines if line[:2] == ["epoch", "step"])
    scores = ["macro/hits@1", "hits@1", "colours/hits@1", "drinks/hits@1"]
    assert header[4:8] == scores
    assert ["task", "agent", "hits@1"] in [line[:3] for line in lines]
    (drinks,) = [line for line in lines if line[:4] == ["test", "drinks", "this", "model"]]
    assert drinks[-1] == "22"
    assert main("evaluate out/model-best --json scores.json".split()) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0][:2] == ["task", "hits@1"] and rows[0][-1] == "examples"
    sizes = {"colours": "15", "drinks": "22", "macro": "-", "all": "37"}
    assert {row[0]: row[-1] for row in rows[2:]} == sizes
    assert rows[3][1] == drinks[4]
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert {"hits@1", "macro/hits@1", "drinks/f1", "colours/truncated_contexts"} <= set(scores)
