"""Splits that are read from the same file."""

import pytest

from thincdialog.evaluation.shared_file import shared_file
from thincdialog.teachers.json_layout import JSONLayout
from thincdialog.teachers.text_formats import LabelledText


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        rows = [f'{{"text": "{name} {n}", "label": "x{n % 2}"}}\n' for n in range(40)]
        (tmp_path / f"{name}.jsonl").write_text("".join(rows))
    (tmp_path / "link.jsonl").symlink_to("a.jsonl")
    return tmp_path


def said(**files):
    teacher = LabelledText(**files)
    lines = {split: shared_file(teacher, split) for split in teacher.splits}
    return {split: line.partition(":")[0] for split, line in lines.items() if line}


@pytest.mark.parametrize(
    "files, found",
    [
        ({"train": "a.jsonl", "dev": "b.jsonl"}, {}),
        ({"train": "a.jsonl", "dev": "a.jsonl"}, {"dev": "a.jsonl is the train data, too"}),
        (
            {"train": "b.jsonl", "dev": "a.jsonl", "test": "./link.jsonl"},
            {"test": "./link.jsonl is the dev data, too"},
        ),
        (
            {"train": ["a.jsonl", "b.jsonl"], "dev": ["a.jsonl"]},
            {"dev": "a.jsonl is the train data, too"},
        ),
        ({"train": "a.jsonl", "dev_share": 0.2, "test_share": 0.2}, {}),
        (
            {"train": "a.jsonl", "dev_share": 0.2, "test": "a.jsonl"},
            {"test": "a.jsonl is the train data, too"},
        ),
    ],
)
def test_shared_files_are_reported(files, found):
    assert said(**files) == found


def test_shared_file_is_not_reported_if_it_contains_two_splits(folder):
    (folder / "own.yml").write_text("records: {train: learn, dev: see}\ntext: said\nlabel: class\n")
    rows = {
        split: [{"said": f"{split} {n}", "class": str(n % 2)} for n in range(4)]
        for split in ("learn", "see")
    }
    (folder / "all.json").write_text(repr(rows).replace("'", '"'))
    teacher = JSONLayout(layout="own.yml", train="all.json", dev="all.json")
    assert shared_file(teacher, "dev") == ""
