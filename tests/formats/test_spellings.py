"""Speakers and classes that differ only by case or blanks are an error in every format."""

import json
from contextlib import suppress

import pytest

from thincdialog.errors import DataError
from thincdialog.examples import reading
from thincdialog.formats.context import tolerating
from thincdialog.formats.spellings import MOST_LABELS, Place, Spellings, find_slip
from thincdialog.loader.readers import Readers
from thincdialog.teachers import IterableTeacher
from thincdialog.teachers.dataset import Dataset
from thincdialog.teachers.json_layout import JSONLayout
from thincdialog.teachers.ml_datasets import MLDatasets
from thincdialog.teachers.text_formats import Conversations, LabelledText, NumberedText, ParlAIText


def read(teacher, split="train"):
    with tolerating(classes=Spellings()):
        return [message.all_labels for message in teacher.for_split(split).examples()]


# Functions that write labels in every format.
def lines(row):
    return lambda labels: "".join(row.format(n=n, label=label) for n, label in enumerate(labels))


def in_json(labels):
    return json.dumps([{"text": "t", "label": label} for label in labels])


def in_episodes(labels):
    a, b, c, d = labels
    return f"text:t\tlabels:{a}\ntext:t\tlabels:{b}\n\ntext:t\tlabels:{c}\ntext:t\tlabels:{d}\n"


def numbered(labels):
    a, b, c, d = labels
    return f"1 t\t{a}\n2 t\t{b}\n3 said\n4 t\t{c}\n5 t\t{d}\n"


# For each format: teacher, options, name of a file, function that writes labels, line of the third
# label, line of the first one.
LABELS = {
    "csv": (LabelledText, {}, "a.csv", lambda of: "text,label\n" + lines("t,{label}\n")(of), 4, 2),
    "tsv": (
        LabelledText,
        {},
        "a.tsv",
        lambda of: "text\tlabel\n" + lines("t\t{label}\n")(of),
        4,
        2,
    ),
    "jsonl": (LabelledText, {}, "a.jsonl", lines('{{"text": "t", "label": "{label}"}}\n'), 3, 1),
    "ParlAI's text": (ParlAIText, {}, "a.txt", in_episodes, 4, 1),
    "fbdialog": (NumberedText, {"supporting": False}, "a.txt", numbered, 4, 1),
    "bAbI": (NumberedText, {}, "a.txt", numbered, 4, 1),
    "a layout of lines": (
        JSONLayout,
        {"layout": "own.yml"},
        "a.jsonl",
        lines('{{"text": "t", "label": "{label}"}}\n'),
        3,
        1,
    ),
    "a layout of a whole file": (JSONLayout, {"layout": "own.yml"}, "a.json", in_json, None, None),
}
PAIRS = [("greet", "greet "), ("greet", "Greet"), ("set alarm", "set  alarm"), ("ok", "OK")]


@pytest.fixture
def made(tmp_path, monkeypatch, written):
    """Return a function that writes labels to a file of a format and makes its teacher."""
    monkeypatch.chdir(tmp_path)

    def make(name, labels, streaming=False, **more):
        teacher, options, file, text, *_ = LABELS[name]
        written("label: label\n", "own.yml")
        written(text(labels), file)
        return teacher(train=file, streaming=streaming, **options, **more)

    return make


@pytest.mark.parametrize("one, other", PAIRS)
@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("streaming", [False, True])
def test_labels_that_differ_by_case_or_blanks_are_an_error(made, name, one, other, streaming):
    labels = [one, "bye", other, one]
    teacher = made(name, labels, streaming)
    file, line, first = LABELS[name][2], *LABELS[name][4:]
    with pytest.raises(DataError) as caught:
        read(teacher)
    text = f"the label {other!r} differs from {one!r} ({file}"
    where = f"{file}:{line}  {text}:{first}) only" if line else f"{file}  example 2/0 has {text}"
    assert str(caught.value).startswith(where)
    # Replies are texts, which may differ by case or blanks.
    found = [message.all_labels[0] for message in teacher.for_split("train").examples()]
    assert found == labels


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("streaming", [False, True])
def test_the_later_spelling_of_a_label_is_skipped_and_counted(made, name, streaming):
    is_long = name in ("ParlAI's text", "fbdialog", "bAbI")  # One episode.
    labels = ["greet", "bye", "Greet", "greet"]
    teacher = made(name, labels, streaming, on_bad_data="skip", max_bad_share=1.0)
    if is_long:
        with pytest.raises(DataError, match="no examples"):
            read(teacher)
        return
    for _ in range(2):
        assert read(teacher) == [["greet"], ["bye"], ["greet"]]
        (bad,) = teacher.data["train"].bad_data()
        assert (bad.n_read, bad.n_skipped) == (3, 1)
        assert "the label 'Greet' differs from 'greet'" in bad.summary()


def parts(speakers):
    turns = [{"speaker": who, "text": str(n)} for n, who in enumerate(speakers)]
    return [turns[n : n + 2] for n in range(0, len(turns), 2)]


def talks(speakers):
    return "".join(json.dumps({"turns": turns}) + "\n" for turns in parts(speakers))


def dialogs(speakers):
    turns = [[{"id": t["speaker"], "text": t["text"]} for t in part] for part in parts(speakers)]
    return "".join(json.dumps({"dialog": [part]}) + "\n" for part in turns)


def table(speakers):
    rows = (f"{n // 2},{who},{n}\n" for n, who in enumerate(speakers))
    return "talk,who,text\n" + "".join(rows)


def whole(speakers):
    return json.dumps([{"turns": turns} for turns in parts(speakers)])


TURNS = "turns: turns\nspeaker: speaker\nlabel_speaker: bot\n"
ROWS = "group: talk\nspeaker: who\nlabel_speaker: bot\n"
SPEAKERS = {
    "turns": (Conversations, "", "a.jsonl", talks, ":2"),
    "ParlAI's turns": (Conversations, "", "a.jsonl", dialogs, ":2"),
    "a layout of lines": (JSONLayout, TURNS, "a.jsonl", talks, ":2"),
    "a layout of rows": (JSONLayout, ROWS, "a.csv", table, ":5"),
    "a layout of a file": (JSONLayout, TURNS, "a.json", whole, "  conversation '1': "),
}


@pytest.fixture
def spoken(tmp_path, monkeypatch, written):
    monkeypatch.chdir(tmp_path)

    def make(name, speakers, **options):
        teacher, layout, file, text, *_ = SPEAKERS[name]
        written(text(speakers), file)
        if layout:
            return teacher(written(layout, "own.yml"), train=file, **options)
        return teacher(train=file, label_speaker="bot", **options)

    return make


@pytest.mark.parametrize("slip", ["Bot", "bot ", "b ot"])
@pytest.mark.parametrize("name", SPEAKERS)
@pytest.mark.parametrize("streaming", [False, True])
def test_speakers_that_differ_by_case_or_blanks_are_an_error(spoken, name, slip, streaming):
    teacher = spoken(name, ["x", "bot", "x", slip, "x", "bot"], streaming=streaming)
    file, line = SPEAKERS[name][2], SPEAKERS[name][4]
    with pytest.raises(DataError) as caught:
        read(teacher)
    assert str(caught.value).startswith(f"{file}{line}")
    assert f"the speaker {slip!r} differs from 'bot' only by case" in str(caught.value)
    options = {"on_bad_data": "skip", "max_bad_share": 0.4, "streaming": streaming}
    teacher = spoken(name, ["x", slip, "x", "bot", "x", "bot"], **options)
    for _ in range(2):
        assert read(teacher) == [["3"], ["5"]]
        assert [bad.n_skipped for bad in teacher.data["train"].bad_data()] == [1]


def test_spellings_are_compared_across_files_and_splits(written, tmp_path):
    def rows(*labels):
        return [{"text": f"t{n}", "label": label} for n, label in enumerate(labels)]

    train = [written(rows("greet", "bye"), "a.jsonl"), written(rows("bye", "Greet"), "b.jsonl")]
    with pytest.raises(DataError, match=r"b.jsonl:2 .*'Greet' differs from 'greet' .*a.jsonl:1"):
        read(LabelledText(train=train))
    teacher = LabelledText(train=train[0], test=train[1])
    with tolerating(classes=Spellings()):
        assert len(list(teacher.for_split("train").examples())) == 2
        with pytest.raises(DataError, match=r"b.jsonl:2 .*'Greet' differs from 'greet'"):
            list(teacher.for_split("test").examples())
    # Both spellings are found, even if one of them is held out.
    many = written(rows(*["greet"] * 40, "Greet"), "many.jsonl")
    with pytest.raises(DataError, match="many.jsonl:41"):
        read(LabelledText(train=many, dev_share=0.5))


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("place", [3, 200])
def test_spellings_are_compared_across_tasks_of_readers(written, monkeypatch, streaming, place):
    monkeypatch.setattr(reading, "FIRST_BYTES", 1)
    monkeypatch.setattr(reading, "MOST_BYTES", 300)
    rows = [{"text": f"t{n}", "label": "ab"[n % 2]} for n in range(300)]
    rows[place]["label"] = "A"
    teacher = LabelledText(train=written(rows, "a.jsonl"), streaming=streaming)
    teacher.read_with(Readers(0), lambda: None)
    with pytest.raises(DataError, match=f"a.jsonl:{place + 1}  the label 'A' differs from 'a'"):
        with tolerating(classes=Spellings()):
            list(teacher.for_split("train").texts())
    said = [{"turns": [{"speaker": "x", "text": "t"}, {"speaker": "y", "text": "t"}]}] * 300
    said[place] = {"turns": [{"speaker": "x", "text": "t"}, {"speaker": "X", "text": "t"}]}
    teacher = Conversations(train=written(said, "b.jsonl"), streaming=streaming)
    teacher.read_with(Readers(0), lambda: None)
    with pytest.raises(DataError, match=f"b.jsonl:{place + 1}  .*the speaker 'X' differs from 'x'"):
        list(teacher.for_split("train").texts())


@pytest.fixture
def of_loader():
    import catalogue
    from ml_datasets._registry import register_loader

    def make(rows):
        register_loader("spelled", func=lambda: ([(row["text"], row["label"]) for row in rows], []))
        return MLDatasets("spelled")

    yield make
    with suppress(catalogue.RegistryError):
        catalogue._remove(("ml-datasets", "spelled"))


def of_parquet(rows, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    return Dataset(train=str(tmp_path / "a.parquet"))


@pytest.mark.parametrize("source", ["list", "Parquet", "ml_datasets", "Python"])
def test_spellings_are_compared_in_data_without_lines(source, tmp_path, of_loader):
    rows = [{"text": f"t{n}", "label": label} for n, label in enumerate(["yes", "no", "Yes"])]
    teacher = {
        "list": lambda: Dataset(train=rows),
        "Parquet": lambda: of_parquet(rows, tmp_path),
        "ml_datasets": lambda: of_loader(rows),
        "Python": lambda: IterableTeacher({"train": [(r["text"], r["label"]) for r in rows]}),
    }[source]()
    with pytest.raises(DataError, match="example 2.* has the label 'Yes' differs from 'yes'"):
        read(teacher)


def test_partners_are_only_compared_with_a_label_speaker_that_is_a_name():
    _, text = find_slip(["x", "X", "Bot"], "bot")
    assert text.startswith("the speaker 'Bot' differs from 'bot' only by case or blanks")
    assert find_slip(["x", "X", "bot"], "bot") == ("", "")
    assert find_slip(["x", "bot", "X"])[0] == "X"


def test_spellings_take_little_memory():
    names = Spellings()
    for number in range(2 * MOST_LABELS):
        names.add(f"class {number}", Place("a", number))
    assert len(names.known) == MOST_LABELS


def test_the_classes_of_a_model_are_right_as_they_are():
    names, place = Spellings(), Place("a class of the model")
    names.accept(["yes", "Yes", "no"], place)
    for name in ("yes", "Yes", "no", "perhaps"):
        names.add(name, Place("a.csv", 1))
    with pytest.raises(DataError, match=r"'NO' differs from 'no' \(a class of the model\) only by"):
        names.add("NO", Place("a.csv", 2))
    # As in training, more classes than this are not compared.
    many = Spellings()
    many.accept((f"class {number}" for number in range(2 * MOST_LABELS)), place)
    many.add("CLASS 1", Place("a.csv", 1))
