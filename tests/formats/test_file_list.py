"""Paths of data that are folders or file name patterns."""

import pytest

from thincdialog.errors import DataError
from thincdialog.formats.file_list import file_list
from thincdialog.teachers.json_layout import JSONLayout
from thincdialog.teachers.text_formats import LabelledText


@pytest.fixture
def folder(tmp_path):
    for name in ("b.csv", "a.csv", "README.txt", "notes.md", "sub/c.csv", "sub/deep/d.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"text,label\n{name},x\n")
    return tmp_path


@pytest.mark.parametrize("given, expected", [
    ("", ["a.csv", "b.csv"]), ("*.csv", ["a.csv", "b.csv"]), ("[b-c].csv", ["b.csv"]),
    ("**/*.csv", ["a.csv", "b.csv", "sub/c.csv", "sub/deep/d.csv"]), ("su?", ["su?"]),
    ("b.csv", ["b.csv"]), ("no.csv", ["no.csv"]), ("*.gz", ["*.gz"]), ("sub/d*", ["sub/d*"]),
])  # fmt: skip
def test_file_list_of_folders_and_patterns(folder, given, expected):
    assert file_list(str(folder / given)) == [str(folder / name) for name in expected]
    both = file_list([str(folder / "b.csv"), str(folder / given)])
    assert both == [str(folder / name) for name in ("b.csv", *expected)]


def test_a_file_whose_name_looks_like_a_pattern_is_found(tmp_path):
    (tmp_path / "a[1].csv").touch()
    (tmp_path / "a1.csv").touch()
    assert file_list(str(tmp_path / "a[1].csv")) == [str(tmp_path / "a[1].csv")]


def test_teachers_read_all_files_of_a_folder(folder):
    for given in (str(folder), str(folder / "*.csv"), [str(folder / "a.csv"), str(folder / "b*")]):
        shown = LabelledText(train=given).for_split("train")
        assert [message["text"] for message in shown.examples()] == ["a.csv", "b.csv"]
        assert [message["id"] for message in shown.examples()] == ["2/0", "1:2/0"]
    with pytest.raises(DataError, match=r"\*.jsonl  file not found"):
        LabelledText(train=str(folder / "*.jsonl")).check_sources()


def test_a_folder_without_data_files_is_an_error(folder):
    (folder / "sub" / "c.csv").unlink()
    says = r"sub  is a directory: give a file in it \(none here ends in one of .txt, .csv"
    with pytest.raises(DataError, match=says):
        LabelledText(train=str(folder / "sub")).check_sources()


def test_the_folder_of_a_saved_data_set_is_read_as_a_whole(tmp_path):
    datasets = pytest.importorskip("pyarrow")
    rows = [{"prompt": "a", "completion": "b"}, {"prompt": "c", "completion": "d"}]
    table = datasets.Table.from_pylist(rows)
    with datasets.OSFile(str(tmp_path / "data-0.arrow"), "wb") as file:
        with datasets.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
    (tmp_path / "state.json").write_text('{"_data_files": [{"filename": "data-0.arrow"}]}')
    teacher = JSONLayout("prompt-completion", train=str(tmp_path))
    teacher.check_sources()
    assert teacher.data["train"].data_files() == [str(tmp_path)]
    assert [m["text"] for m in teacher.for_split("train").examples()] == ["a", "c"]
    with pytest.raises(
        DataError, match="is a folder that the library datasets has saved: read it with"
    ):
        LabelledText(train=str(tmp_path)).check_sources()
