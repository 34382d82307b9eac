"""Data that is another one when a run goes on: refused by name, or listed."""

import json
import shutil

import pytest

from tests.runs.test_faults import TEXT, run
from thincdialog.errors import ConfigError, DataError

SPLITS = TEXT.replace(
    "train = ${paths.train}\n", "train = ${paths.train}\ndev = ${paths.dev}\ntest = ${paths.test}\n"
)
assert SPLITS != TEXT
ON = {"resume": True, "training__max_steps": 8}


@pytest.fixture
def data(tmp_path):
    """The path of each split's file, as overrides."""
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


def test_changed_dev_data_is_refused_by_name(tmp_path, data):
    folder = tmp_path / "out"
    run(folder, text=SPLITS, **data)
    path = change(tmp_path, "dev", new="33")
    with pytest.raises(DataError) as caught:
        run(folder, text=SPLITS, **data, **ON)
    size = path.stat().st_size
    assert str(caught.value) == (
        f"{path}  is not the file that {folder / 'checkpoint-6'} was made with ({size - 1:,} bytes "
        f"then, {size:,} now), and by its scores the best model is chosen: give the same data to "
        "go on, or begin another run in another --output"
    )
    # The checkpoint is as it was: with the old data the run goes on.
    change(tmp_path, "dev", "33", "3")
    _, shown = run(folder, text=SPLITS, **data, **ON)
    assert "Going on" in shown and "Changed since: training.max_steps 6 -> 8.\n" in shown


def test_changed_test_data_is_listed(tmp_path, data):
    folder = tmp_path / "out"
    before, _ = run(folder, text=SPLITS, **data)
    path = change(tmp_path, "test")
    after, shown = run(folder, text=SPLITS, **data, **ON)
    assert f"Changed since: training.max_steps 6 -> 8; what is in {path}.\n" in shown
    assert after.scores["test"] != before.scores["test"]
    # From then on it is the run's.
    _, shown = run(folder, text=SPLITS, **data, resume=True, training__max_steps=10)
    assert "Changed since: training.max_steps 8 -> 10.\n" in shown


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_changed_place_of_the_same_data_is_harmless(tmp_path, data, split):
    folder = tmp_path / "out"
    run(folder, text=SPLITS, **data)
    moved = tmp_path / "moved.jsonl"
    shutil.move(data[f"paths__{split}"], moved)
    _, shown = run(folder, text=SPLITS, **{**data, f"paths__{split}": str(moved)}, **ON)
    assert "Going on" in shown and f"paths.{split}" in shown and "what is in" not in shown


def test_changed_number_of_dev_files_is_refused_by_name(tmp_path, data):
    folder = tmp_path / "out"
    run(folder, text=SPLITS, **data)
    two = SPLITS.replace("${paths.dev}", '["${paths.dev}", "${paths.test}"]')
    assert two != SPLITS
    with pytest.raises(DataError) as caught:
        run(folder, text=two, **data, **ON)
    assert str(caught.value).startswith(
        f"[tasks.it]  has 2 dev files; {folder / 'checkpoint-6'} was made with 1, and by its "
        "scores the best model is chosen: give the same data"
    )


def test_changed_dev_data_cannot_be_taken_away_but_be_added_where_there_was_none(tmp_path, data):
    without = {**data, "paths__dev": None}
    run(tmp_path / "with", text=SPLITS, **data)
    with pytest.raises(
        ConfigError, match=r"\[tasks.it\] dev = None, but .*checkpoint-6 has '.*dev"
    ):
        run(tmp_path / "with", text=SPLITS, **without, **ON)
    run(tmp_path / "without", text=SPLITS, **without)
    _, shown = run(tmp_path / "without", text=SPLITS, **data, **ON)
    assert "Going on" in shown and "paths.dev None -> " in shown
    # From now on it stays.
    change(tmp_path, "dev")
    with pytest.raises(DataError, match="dev.jsonl  is not the file"):
        run(tmp_path / "without", text=SPLITS, **data, resume=True, training__max_steps=10)


def test_changed_test_data_can_be_taken_away_and_added(tmp_path, data):
    without = {**data, "paths__test": None}
    folder = tmp_path / "out"
    run(folder, text=SPLITS, **data)
    result, shown = run(folder, text=SPLITS, **without, **ON)
    assert "Going on" in shown and "test" not in result.scores
    result, shown = run(folder, text=SPLITS, **data, resume=True, training__max_steps=10)
    assert "Going on" in shown and "test" in result.scores


@pytest.fixture
def with_candidates(tmp_path, data):
    """The same data, with its fixed candidates."""
    path = tmp_path / "candidates.txt"
    path.write_text("".join(f"b {n}\n" for n in range(7)))
    return {**data, "tasks__it__candidates": str(path)}


def test_changed_candidates_are_refused_by_name(tmp_path, with_candidates):
    folder, path = tmp_path / "out", tmp_path / "candidates.txt"
    run(folder, text=SPLITS, **with_candidates)
    whole = path.read_text()
    path.write_text(f"{whole}b 8\n")
    with pytest.raises(DataError) as caught:
        run(folder, text=SPLITS, **with_candidates, **ON)
    assert str(caught.value) == (
        f"{path}  is not the file that {folder / 'checkpoint-6'} was made with (28 bytes then, "
        "32 now): give the same data to go on, or begin another run in another --output"
    )
    path.write_text(whole)
    _, shown = run(folder, text=SPLITS, **with_candidates, **ON)
    assert "Changed since: training.max_steps 6 -> 8.\n" in shown


def test_changed_place_of_the_same_candidates_is_harmless(tmp_path, with_candidates):
    folder, moved = tmp_path / "out", tmp_path / "moved.txt"
    run(folder, text=SPLITS, **with_candidates)
    shutil.move(tmp_path / "candidates.txt", moved)
    # Not there is told before any data is read.
    with pytest.raises(DataError, match="candidates.txt  file not found"):
        run(folder, text=SPLITS, **with_candidates, **ON)
    _, shown = run(
        folder, text=SPLITS, **{**with_candidates, "tasks__it__candidates": str(moved)}, **ON
    )
    assert "Going on" in shown and "tasks.it.candidates" in shown and "what is in" not in shown
