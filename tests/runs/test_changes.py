"""Settings and data that have changed when a run is resumed: refused by name, or listed."""

import gzip
import json
import shutil
from copy import deepcopy

import pytest

from tests.saved_dataset import save_dataset
from tests.training.examples import RANKER, quietly_train
from thincdialog.errors import ConfigError, DataError
from thincdialog.runs.changes import check_config
from thincdialog.training.experiment import Experiment

TASK = """[tasks.it]
@teachers = "thincdialog.LabelledText.v1"
train = ${paths.train}
dev = ${paths.dev}
test = ${paths.test}

"""
SPLITS = RANKER.replace(
    RANKER[RANKER.index("[tasks.coffee]") : RANKER.index("[tokenizer]")], TASK
).replace('candidates = "inline"', 'candidates = "batch"')
TO_RESUME = "give the same data to resume, or start another run with another --output"


def run(folder, config=SPLITS, n=6, **options):
    every = {"training__checkpoint_every_steps": 2}
    return quietly_train(config, folder, training__max_steps=n, **{**every, **options})


def go_on(folder, n=8, **options):
    return run(folder, n=n, resume=True, **options)


# --- settings ---------------------------------------------------------------------------


def test_run_from_before_a_setting_existed_had_its_default():
    now = Experiment.from_config(RANKER, {"training.accumulate_gradient": 2})
    before = deepcopy(dict(now.checked.interpolated))
    del before["mixture"]["unit"]
    assert check_config(now, before, "it") == []
    del before["training"]["accumulate_gradient"]
    with pytest.raises(ConfigError, match="accumulate_gradient = 2, but it has 1 ") as caught:
        check_config(now, before, "it")
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("limit", [{"steps": 3}, {"epochs": 0.25}, {"seconds": 1e-9}])
def test_limits_below_the_training_so_far_are_refused(tmp_path, limit):
    run(tmp_path / "out", RANKER)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    ((unit, lower),) = limit.items()
    given = {"training__max_steps": 6, f"training__max_{unit}": lower}
    with pytest.raises(ConfigError, match=rf"max_{unit} = {lower}, but .* already has .* {unit}"):
        quietly_train(RANKER, tmp_path / "out", resume=True, training__checkpoint_every_steps=2,
                      **given)  # fmt: skip
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_harmful_changes_are_refused_by_name_with_both_values(tmp_path):
    run(tmp_path, RANKER)
    harmful = {
        "system.seed": 4, "world.batcher.size": 8, "training.optimizer.learn_rate": 0.5,
        "training.accumulate_gradient": 2, "agent.model.encoder.width": 8,
        "tasks.coffee.n_train": 30, "mixture.unit": "words", "training.score": "accuracy",
        # Scores before and after would be about different questions.
        "evaluation.max_examples": 5, "evaluation.n_candidates": 7,
        "evaluation.metrics.accuracy.normalize": False,
    }  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        go_on(tmp_path, config=RANKER, **harmful)
    assert len(caught.value.problems) == len(harmful)
    assert (
        f"[training.optimizer] learn_rate = 0.5, but {tmp_path / 'checkpoint-6'} has 0.01"
        in str(caught.value)
    )
    harmless = {
        "training.patience": 3,
        "evaluation.world.batcher.size": 7,
        "training.eval_every_epochs": 0.5,
        "training.n_samples": 0,
        "training.checkpoint_every_steps": 3,
    }
    metrics = {"accuracy": "Accuracy", "f1": "F1", "ranking": "Ranking", "new": "DistinctN"}
    added = RANKER + "".join(
        f'\n[evaluation.metrics.{name}]\n@metrics = "thincdialog.{function}.v1"\n'
        for name, function in metrics.items()
    )
    _, shown = go_on(tmp_path, config=added, **harmless)
    assert all(name in shown for name in [*harmless, "evaluation.metrics.new.@metrics"])


# --- data -------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path):
    """Write a file for each split. Return their paths, as overrides."""
    found = {}
    for split, n_rows in {"train": 90, "dev": 12, "test": 9}.items():
        path = tmp_path / f"{split}.jsonl"
        rows = [{"text": f"{split} {n}", "label": f"b {n % 7}"} for n in range(n_rows)]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        found[f"paths__{split}"] = str(path)
    return found


def change(tmp_path, split, old="3", new="4"):
    path = tmp_path / f"{split}.jsonl"
    text = path.read_text()
    path.write_text(text.replace(f"{split} {old}", f"{split} {new}"))
    assert path.read_text() != text
    return path


@pytest.mark.parametrize("split", ["train", "dev"])
def test_changed_data_is_refused_by_name(tmp_path, data, split):
    folder = tmp_path / "out"
    run(folder, **data)
    path = change(tmp_path, split, "7", "77")
    with pytest.raises(DataError) as caught:
        go_on(folder, **data)
    size = path.stat().st_size
    why = ", and its scores choose the best model" if split == "dev" else ""
    n = {"train": 11, "dev": 1}[split]
    assert str(caught.value) == (
        f"{path}  has changed since {folder / 'checkpoint-6'} was made ({size - n:,} "
        f"bytes then, {size:,} now){why}: {TO_RESUME}"
    )
    # The checkpoint has not changed: with the old data the run resumes.
    change(tmp_path, split, "77", "7")
    _, shown = go_on(folder, **data)
    assert "Resuming from" in shown and "Changed since: training.max_steps 6 -> 8.\n" in shown


def test_changed_test_data_is_listed(tmp_path, data):
    folder = tmp_path / "out"
    before, _ = run(folder, **data)
    path = change(tmp_path, "test")
    after, shown = go_on(folder, **data)
    assert f"Changed since: training.max_steps 6 -> 8; the content of {path}.\n" in shown
    assert after.scores["test"] != before.scores["test"]
    # From then on it belongs to the run.
    _, shown = go_on(folder, 10, **data)
    assert "Changed since: training.max_steps 8 -> 10.\n" in shown
    # Test data can be removed and added, too.
    assert "test" not in go_on(folder, 10, **{**data, "paths__test": None})[0].scores
    assert "test" in go_on(folder, 12, **data)[0].scores


def test_changed_place_of_the_same_data_is_harmless(tmp_path, data):
    folder = tmp_path / "out"
    run(folder, **data)
    (tmp_path / "moved").mkdir()
    moved = {name: shutil.move(path, tmp_path / "moved") for name, path in data.items()}
    _, shown = go_on(folder, **moved)
    assert "Resuming from" in shown and "the content of" not in shown
    assert all(f"paths.{split}" in shown for split in ("train", "dev", "test"))


def test_changed_number_of_dev_files_is_refused_by_name(tmp_path, data):
    folder = tmp_path / "out"
    run(folder, **data)
    two = SPLITS.replace("${paths.dev}", '["${paths.dev}", "${paths.test}"]')
    with pytest.raises(DataError) as caught:
        go_on(folder, config=two, **data)
    assert str(caught.value).startswith(
        f"[tasks.it]  has 2 dev files; {folder / 'checkpoint-6'} was made with 1, and its "
        "scores choose the best model: give the same data"
    )


def test_dev_data_cannot_be_removed_but_can_be_added(tmp_path, data):
    without, folder = {**data, "paths__dev": None}, tmp_path / "without"
    run(tmp_path / "with", **data)
    with pytest.raises(
        ConfigError, match=r"\[tasks.it\] dev = None, but .*checkpoint-6 has '.*dev"
    ):
        go_on(tmp_path / "with", **without)
    run(folder, **without)
    _, shown = go_on(folder, **data)
    assert "Resuming from" in shown and "paths.dev None -> " in shown
    # From now on it must stay.
    change(tmp_path, "dev")
    with pytest.raises(DataError, match="dev.jsonl  has changed since"):
        go_on(folder, 10, **data)


def test_changed_candidates_are_refused_by_name(tmp_path, data):
    path, folder = tmp_path / "candidates.txt", tmp_path / "out"
    path.write_text("".join(f"b {n}\n" for n in range(7)))
    given = {**data, "tasks__it__candidates": str(path)}
    run(folder, **given)
    whole = path.read_text()
    path.write_text(f"{whole}b 8\n")
    with pytest.raises(DataError) as caught:
        go_on(folder, **given)
    assert str(caught.value) == (
        f"{path}  has changed since {folder / 'checkpoint-6'} was made (28 bytes then, "
        f"32 now): {TO_RESUME}"
    )
    path.unlink()
    # A missing file is reported before any data is read.
    with pytest.raises(DataError, match="candidates.txt  file not found"):
        go_on(folder, **given)
    moved = tmp_path / "moved.txt"
    moved.write_text(whole)
    _, shown = go_on(folder, **{**given, "tasks__it__candidates": str(moved)})
    assert (
        "Resuming from" in shown
        and "tasks.it.candidates" in shown
        and "the content of" not in shown
    )


def flip(path):
    """Change the byte in the middle of a file. Its size stays the same."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def is_refused(path, folder, config=SPLITS, **given):
    with pytest.raises(DataError) as caught:
        go_on(folder, config=config, **given)
    checkpoint = folder / "checkpoint-6"
    text = f"{path}  has changed since {checkpoint} was made: {TO_RESUME}"
    return str(caught.value) == text


@pytest.mark.parametrize("is_packed", [False, True])
def test_one_byte_of_a_large_file_is_noticed(tmp_path, data, is_packed):
    path, folder = tmp_path / "large.jsonl", tmp_path / "out"
    rows = [{"text": f"a {n}", "label": f"b {n % 7}", "note": "x" * 70_000} for n in range(90)]
    text = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    # Without compression, the file has as many bytes as the text.
    path.write_bytes(gzip.compress(text, 0, mtime=0) if is_packed else text)
    given = {**data, "paths__train": str(path)}
    run(folder, **given)
    flip(path)
    assert path.stat().st_size > 6_000_000 and is_refused(path, folder, **given)
    flip(path)
    path.touch()
    assert "Resuming from" in go_on(folder, **given)[1]


def test_changed_layout_is_refused_by_name(tmp_path, data, monkeypatch):
    monkeypatch.chdir(tmp_path)
    layout, folder = tmp_path / "my.yml", tmp_path / "out"
    layout.write_text("text: text\nabout: mine and mine\nlabel: label\n")
    config = SPLITS.replace('LabelledText.v1"', 'JSONLayout.v1"\nlayout = "my.yml"')
    run(folder, config, **data)
    flip(layout)
    assert is_refused("my.yml", folder, config, **data)
    flip(layout)
    moved = shutil.move(layout, tmp_path / "moved.yml")
    _, shown = go_on(folder, config=config, tasks__it__layout=moved, **data)
    assert "Resuming from" in shown and "tasks.it.layout 'my.yml' -> " in shown


def test_changed_candidates_of_the_agent_are_refused_by_name(tmp_path, data):
    path, folder = tmp_path / "candidates.txt", tmp_path / "out"
    path.write_text("".join(f"b {n}\n" for n in range(7)))
    given = {**data, "agent__fixed_candidates": str(path)}
    run(folder, **given)
    flip(path)
    assert is_refused(path, folder, **given)
    flip(path)
    moved = shutil.move(path, tmp_path / "moved.txt")
    with pytest.raises(DataError, match="candidates.txt  file not found"):
        go_on(folder, **given)
    with pytest.raises(ConfigError, match="fixed_candidates = None, but .*checkpoint-6 has '"):
        go_on(folder, **data)
    _, shown = go_on(folder, **{**given, "agent__fixed_candidates": moved})
    assert "Resuming from" in shown and "agent.fixed_candidates" in shown


def test_changed_folder_of_data_is_refused_by_name(tmp_path):
    save_dataset(tmp_path / "data", 90)
    folder, config = tmp_path / "out", SPLITS.replace("LabelledText", "Dataset")
    given = {"paths__train": str(tmp_path / "data")}
    run(folder, config, **given)
    shard = tmp_path / "data" / "data-00001-of-00002.arrow"
    content = shard.read_bytes()
    shard.write_bytes(content.replace(b"text 7", b"text 8"))
    assert is_refused(tmp_path / "data", folder, config, **given)
    shard.write_bytes(content)
    moved = shutil.move(tmp_path / "data", tmp_path / "moved")
    assert "Resuming from" in go_on(folder, config=config, paths__train=moved)[1]
