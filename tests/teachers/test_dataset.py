"""Custom data sets: iterables, indexables, files."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.processes import little_memory, no_longer_than
from tests.saved_dataset import save_dataset
from tests.training.examples import CLASSIFIER
from thincdialog.api import ConfigError, DataError
from thincdialog.cli.main import main
from thincdialog.contract import CodeError
from thincdialog.formats.context import tolerating
from thincdialog.teachers.dataset import Dataset
from thincdialog.teachers.json_layout import JSONLayout


def shown(dataset, **options):
    teacher = Dataset(dataset, **options).for_split("train")
    return [
        {name: cell for name, cell in message.items() if name != "episode_done"}
        for message in teacher.examples()
    ]


class Indexed:
    """A data set like those of PyTorch: it can be indexed, and indexing past its end does not
    fail."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        return self.rows[number % len(self.rows)]


class Again:
    """A data set that can be iterated over repeatedly, but not be indexed."""

    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)


class Endless(Indexed):
    """A data set whose length is invalid."""

    def __len__(self):
        return self.rows


class Tensor:
    """An object like a tensor of PyTorch."""

    def __init__(self, values):
        self.values = np.array(values)

    def __array__(self, dtype=None, copy=None):
        return self.values


ROWS = [{"text": "a", "label": "x", "mood": 3}, {"text": "b", "label": ["y", "z"], "id": 7}]
SHOWN = [
    {"text": "a", "eval_labels": ["x"], "mood": 3, "id": "0/0"},
    {"text": "b", "eval_labels": ["y", "z"], "id": "7"},
]


@pytest.mark.parametrize("dataset", [ROWS, Indexed(ROWS)], ids=["list", "indexed"])
@pytest.mark.parametrize("streaming", [False, True])
def test_dataset_rows_are_examples(dataset, streaming):
    assert shown(dataset, streaming=streaming) == SHOWN


def test_dataset_pairs_and_tensors():
    tensor = Tensor([[1.0, 2.0], [3.0, 4.0]])
    text, picture = shown(Indexed([("hm", Tensor(3)), (tensor, 1)]))
    assert text == {"text": "hm", "eval_labels": ["3"], "id": "0/0"}
    assert picture["text"] == "" and picture["eval_labels"] == ["1"]
    assert picture["features"].dtype == np.float32
    assert picture["features"].tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_dataset_of_unlabelled_rows():
    rows = [{"text": "a", "label": None}, {"text": "b", "label": "x"}]
    assert [row.get("eval_labels") for row in shown(rows)] == [None, ["x"]]


def test_dataset_rows_without_a_list_of_labels_are_errors_for_sets_of_labels():
    """Only an empty list means that a text has no label."""
    with tolerating(empty_labels=True):
        assert shown([{"text": "a", "label": []}])[0]["eval_labels"] == []
        for row in ({"text": "a", "label": None}, {"text": "a", "lable": ["x"]}):
            with pytest.raises(DataError, match="row 0 has no 'label'"):
                shown([row])


def test_dataset_labels_come_in_many_forms():
    labels = [np.array([0, 2]), np.int64(3), 4, 0.5, ("a", 1)]
    rows = [{"text": "a", "label": label} for label in labels]
    said = [row["eval_labels"] for row in shown(rows)]
    assert said == [["0", "2"], ["3"], ["4"], ["0.5"], ["a", "1"]]
    (row,) = shown([{"text": "a", "labels": "x", "label_candidates": "x"}])
    assert row["eval_labels"] == ["x"] == row["label_candidates"]


def test_dataset_shares_are_held_out_by_the_number_of_the_row():
    rows = [(f"text {number}", "ab"[number % 2]) for number in range(200)]
    found = []
    for data in (rows, Indexed(rows), Again(rows)):
        teacher = Dataset(data, dev_share=0.2, test_share=0.1)
        parts = {
            split: [message["id"] for message in teacher.for_split(split).examples()]
            for split in ("train", "dev", "test")
        }
        assert sorted(sum(parts.values(), [])) == sorted(f"{number}/0" for number in range(200))
        found.append(parts)
    assert found[0] == found[1] == found[2]
    assert [len(part) for part in found[0].values()] == [146, 36, 18]
    assert "20 % of the training conversations" in teacher.data["dev"].about()
    with pytest.raises(ConfigError, match="'dev_share' of .* is given together with 'dev'"):
        Dataset(rows, rows, dev_share=0.1)


def test_dataset_fields_have_other_names():
    rows = [{"question": "who?", "answer": 2, "label": "kept"}]
    assert shown(rows, text_field="question", label_field="answer") == [
        {"text": "who?", "eval_labels": ["2"], "label": "kept", "id": "0/0"}
    ]


@pytest.mark.parametrize(
    "dataset, error, words",
    [
        (3, DataError, "the data set of the split 'train'  ?is '3': expected an iterable"),
        (iter(ROWS), DataError, "which can be read only once: give a list, or an iterable"),
        ([], DataError, "has no examples"),
        ([{"text": 3}], DataError, "row 0 'text' is '3', not a string"),
        ([{"txet": "a", "label": "x"}], None, ""),
        (
            [{"text": "a", "labels": 3}],
            DataError,
            "'labels' of row 0 .* set label_field = 'labels'",
        ),
        ([{"text": "a", "labels": [3]}], DataError, "'labels' of row 0 must be strings, found"),
        ([{"text": "a", "label": {"x": 1}}], DataError, "'labels' of row 0 must be strings"),
        ([{"text": "a", "label": "x", "label_candidates": ["y"]}], DataError, "'x' is not among"),
        ([{"label": "x"}], DataError, "row 0 has no input: the field 'text' is missing"),
        (
            [{"text": "a", "label_candidates": [1]}],
            DataError,
            "'label_candidates' of row 0 must be",
        ),
        ([{"text": "a", "eval_labels": "b"}], DataError, 'set label_field = "eval_labels"'),
        (Indexed([7]), CodeError, r"test_dataset.py:\d+  Indexed.__getitem__\(\) returned an int"),
        (Endless(None), CodeError, r"test_dataset.py:\d+  Endless.__len__\(\) returned None"),
        (Endless(-1), CodeError, r"Endless.__len__\(\) returned an int \(-1\), .* 0 or more"),
    ],
)
def test_dataset_mistakes_are_named(dataset, error, words):
    if error is None:  # A collate function may read a field of any name.
        assert shown(dataset)[0]["txet"] == "a"
        return
    with pytest.raises(error, match=words):
        shown(dataset)


# --- files ----------------------------------------------------------------------------


@pytest.fixture
def arrow():
    return pytest.importorskip("pyarrow")


def table(arrow, n=3000):
    columns = {
        "text": [f"text {number}" for number in range(n)],
        "label": [number % 2 for number in range(n)],
        "image": [[[float(number), 1.0], [2.0, 3.0]] for number in range(n)],
    }
    names = '{"info": {"features": {"label": {"names": ["no", "yes"], "_type": "ClassLabel"}}}}'
    return arrow.table(columns).replace_schema_metadata({"huggingface": names})


def save(arrow, table, path, form):
    if form == "parquet":
        from pyarrow import parquet

        parquet.write_table(table, path)
    elif form == "file":
        with arrow.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        with arrow.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=700)


@pytest.mark.parametrize(
    "name, form", [("a.parquet", "parquet"), ("a.arrow", "file"), ("a.arrow", "stream")]
)
def test_dataset_arrow_files(arrow, tmp_path, name, form):
    path = tmp_path / name
    save(arrow, table(arrow), path, form)
    rows = shown(str(path))
    assert [row["text"] for row in rows] == [f"text {number}" for number in range(3000)]
    assert [row["eval_labels"] for row in rows] == [["no"], ["yes"]] * 1500
    assert rows[2500]["image"].dtype == np.float32
    assert rows[2500]["image"].tolist() == [[2500.0, 1.0], [2.0, 3.0]]


def test_dataset_saved_folder(arrow, tmp_path):
    for number in range(2):
        save(arrow, table(arrow, 5), tmp_path / f"data-{number}.arrow", "stream")
    state = '{"_data_files": [{"filename": "data-1.arrow"}, {"filename": "data-0.arrow"}]}'
    (tmp_path / "state.json").write_text(state)
    assert len(shown(str(tmp_path))) == len(shown(str(tmp_path / "data-?.arrow"))) == 10
    (tmp_path / "state.json").write_text('{"_data_files": [{"filename": "../x.arrow"}]}')
    with pytest.raises(DataError, match="names files outside its folder"):
        shown(str(tmp_path))


FOLDER = """
[tasks.it]
@teachers = "thincdialog.Dataset.v1"
train = "data/train"
dev = "data/dev"

[training]
max_epochs = 1.0
n_samples = 0

"""
STORE = "--loader.store store"


def test_commands_read_a_saved_folder(tmp_path, monkeypatch, capsys):
    save_dataset(tmp_path / "data" / "train", 40)
    save_dataset(tmp_path / "data" / "dev", 10)
    (tmp_path / "it.cfg").write_text(FOLDER + CLASSIFIER)
    monkeypatch.chdir(tmp_path)
    for line in ("train it.cfg -o out", "evaluate out --split dev", f"build it.cfg {STORE}"):
        assert main(line.split()) == 0, capsys.readouterr().err
    assert "it/train         built: it did not exist" in capsys.readouterr().out
    (tmp_path / "data" / "train" / "data-00000-of-00002.arrow").write_bytes(b"")
    assert main(f"train it.cfg -o out --force {STORE}".split()) == 1
    assert "its file data-00000-of-00002.arrow has changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("a.parquet", b"no parquet at all", "cannot be read as parquet"),
        ("a.arrow", b"nothing", "cannot be read as arrow"),
        ("a.json", b"{}", "has an unknown suffix: expected .parquet, .arrow, .feather"),
    ],
)
def test_dataset_damaged_files(arrow, tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=words):
        shown(str(tmp_path / name))


DAMAGED = """
import random, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from tests.teachers.test_dataset import shown
from thincdialog.api import DataError
n_told = 0
for path in sorted(Path(sys.argv[3]).iterdir()):
    content = path.read_bytes()
    for seed in range(2000):
        chance, damaged = random.Random(seed), bytearray(content)
        for _ in range(chance.choice([1, 2, 5, 30])):
            place = 4 * chance.randrange(len(damaged) // 4)
            odd = [b"\\xff\\xff\\xff\\x7f", b"\\0\\0\\0\\x80", b"\\xff" * 4, chance.randbytes(4)]
            damaged[place : place + 4] = chance.choice(odd)
        path.write_bytes(damaged)
        print(path.name, seed, flush=True)
        try:
            shown(str(path))
        except DataError as error:
            assert str(error).startswith(str(path)) and "\\n" not in str(error)
            n_told += 1
assert n_told > 2000
"""


@pytest.mark.slow
def test_dataset_any_damage_is_reported(arrow, root, tmp_path):
    """This runs in its own process, because offsets that point outside the file can crash it."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name, form in (("a.parquet", "parquet"), ("b.arrow", "file"), ("c.arrow", "stream")):
        save(arrow, table(arrow, 40), folder / name, form)
    words = [sys.executable, "-W", "ignore", "-c", DAMAGED, str(root), str(root), str(folder)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-100:] + done.stderr


def test_dataset_odd_columns_are_kept(arrow, tmp_path):
    """Lists that cannot be arrays stay lists. Names of classes that are not strings are ignored."""
    columns = {"text": ["a", "b"], "label": [0, 7], "episode_done": [[1.0], [2.0]]}
    columns.update(rows=[[[1], [2, 3]], [[4]]], gaps=[[None, 1], [2, 2]], whole=[[1, 2], None])
    names = '{"info": {"features": {"label": {"names": [{"no": 1}]}, "rows": {"names": 5}}}}'
    path = tmp_path / "a.parquet"
    save(
        arrow, arrow.table(columns).replace_schema_metadata({"huggingface": names}), path, "parquet"
    )
    first, second = shown(str(path))
    assert first["rows"] == [[1], [2, 3]] and first["gaps"] == [None, 1]
    assert first["whole"].tolist() == [1, 2] and "whole" not in second
    assert first["eval_labels"] == ["0"] and second["eval_labels"] == ["7"]


@pytest.mark.slow
def test_dataset_texts_that_expand_to_too_much_are_refused(arrow, tmp_path):
    """A few kilobytes would fill gigabytes of memory."""
    many = arrow.table({"text": ["a" * (1 << 25)], "label": ["x"]})
    from pyarrow import feather, parquet

    parquet.write_table(many, tmp_path / "a.parquet", compression="zstd")
    feather.write_feather(many, tmp_path / "a.feather", compression="zstd")
    for path in sorted(tmp_path.iterdir()):
        assert path.stat().st_size < 10_000
        with pytest.raises(DataError, match="1 rows unpack to more than 200 times the file's size"):
            shown(str(path))
    told_once = arrow.DictionaryArray.from_arrays([0] * 3000, ["a" * (1 << 20)])
    save(arrow, arrow.table({"text": told_once}), tmp_path / "b.arrow", "stream")
    with little_memory():
        teacher = Dataset(str(tmp_path / "b.arrow")).for_split("train")
        lengths = [len(message["text"]) for message in teacher.examples()]
    assert lengths == [1 << 20] * 3000


def test_dataset_null_texts_are_errors(arrow, tmp_path):
    """The error says that the text is null, not that the column is missing. If there are features,
    the text may be null; a text in another column is no input for an agent that reads text. An
    empty text is a text."""
    path = tmp_path / "a.parquet"
    save(arrow, arrow.Table.from_pylist([{"text": "", "label": "x"}]), path, "parquet")
    (message,) = shown(str(path))
    assert message["text"] == ""
    rows = [{"text": "a", "label": "x", "id": 1}, {"text": None, "label": "y", "id": 2}]
    save(arrow, arrow.Table.from_pylist(rows), path, "parquet")
    with pytest.raises(DataError, match="a.parquet  row 1 has no input: 'text' is null$"):
        shown(str(path))
    rows = [{"text": "a", "label": "x", "from": "b"}, {"text": None, "label": "y", "from": "b"}]
    save(arrow, arrow.Table.from_pylist(rows), path, "parquet")
    with pytest.raises(DataError, match="row 1 has no input: 'text' is null$"):
        with tolerating(needs_text=True):
            shown(str(path))
    rows = [{"text": None, "features": [1.0], "label": "x"}]
    save(arrow, arrow.Table.from_pylist(rows), path, "parquet")
    (message,) = shown(str(path))
    assert message["text"] == "" and message["features"].tolist() == [1.0]


@pytest.mark.parametrize(
    "state",
    ["[" * 300, "{}", *('{"_data_files": %s}' % each for each in ("[[]]", "3", "[3]"))]
    + ['{"_data_files": [{"filename": "%s"}]}' % each for each in ("../x.arrow", "..")]
    + ['{"_data_files": [{"filename": 3}]}'],
)
def test_dataset_invalid_lists_of_files_are_errors(arrow, tmp_path, state):
    (tmp_path / "state.json").write_text(state)
    with pytest.raises(DataError, match=r"state\.json  (is not a list|names files outside)"):
        shown(str(tmp_path))


@pytest.mark.parametrize("name", ["a.arrow", "a.parquet"])
@pytest.mark.parametrize("in_folder", [True, False])
def test_dataset_pipes_are_errors(arrow, tmp_path, name, in_folder):
    os.mkfifo(tmp_path / name)
    with no_longer_than(60), pytest.raises(DataError, match=f"{name}  is not a plain file"):
        shown(str(tmp_path if in_folder else tmp_path / name))


def test_dataset_missing_file_and_folder_of_splits(arrow, tmp_path):
    with pytest.raises(DataError, match="not found"):
        shown(str(tmp_path / "a.parquet"))
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "state.json").write_text("{}")
    with pytest.raises(
        DataError, match="holds several splits: give the path of one, such as .*train"
    ):
        shown(str(tmp_path))


def test_dataset_says_which_package_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(Exception, match=r"pip install 'thincdialog\[arrow\]'"):
        shown(str(tmp_path / "a.parquet"))


def test_dataset_of_conversations_suggests_a_layout(arrow, tmp_path):
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    path = tmp_path / "chat.parquet"
    save(arrow, arrow.Table.from_pylist([{"messages": turns}] * 2), path, "parquet")
    override = "--tasks.NAME.@teachers thincdialog.JSONLayout.v1 --tasks.NAME.layout messages"
    with pytest.raises(DataError, match=f"row 0 has no 'text' and no 'label'\n.*{override}$"):
        list(Dataset(train=str(path)).for_split("train").examples())
    shown = JSONLayout("messages", train=str(path)).for_split("train", training=True)
    assert [(m["text"], m["labels"]) for m in shown.examples()] == [("hi", ["ho"])] * 2


@pytest.mark.parametrize("has_file", [False, True])
def test_dataset_without_the_texts_of_an_agent_names_its_fields(has_file, tmp_path):
    rows = [{"utterance": "hi", "label": "x", "lang": "en"}]
    if has_file:
        pytest.importorskip("pyarrow")
        from pyarrow import Table, parquet

        parquet.write_table(Table.from_pylist(rows), tmp_path / "a.parquet")
    data = str(tmp_path / "a.parquet") if has_file else rows
    expected = r"row 0 has no input: .* \(found: 'utterance', 'label', 'lang'\); set text_field"
    with pytest.raises(DataError, match=expected), tolerating(needs_text=True):
        shown(data)
    assert shown(data)[0]["text"] == ""  # A collate function may read the other fields.
    with tolerating(needs_text=True):
        assert shown(data, text_field="utterance")[0]["text"] == "hi"
        assert shown([{**rows[0], "features": np.ones(3)}])
