"""Files with unreadable lines, and files of another format."""

import json
from functools import partial

import pytest

from tests.examples.talk import write_spoken
from thincdialog.errors import DataError
from thincdialog.formats.context import tolerating
from thincdialog.formats.labelled_text import read_labelled_text
from thincdialog.messages import Message
from thincdialog.teachers import Teacher
from thincdialog.teachers.file_teacher import FileOptions, FileSource
from thincdialog.teachers.json_layout import JSONLayout
from thincdialog.teachers.text_formats import Conversations, LabelledText, NumberedText, ParlAIText

ROW = '{"text": "a", "label": "x"}'


def examples(teacher):
    return [message["id"] for message in teacher.for_split("train").examples()]


@pytest.fixture
def dirty(tmp_path):
    """Write two files of 20 lines, the second with two unreadable lines. Return their paths."""
    (tmp_path / "a.jsonl").write_text("\n".join([ROW] * 20))
    (tmp_path / "b.jsonl").write_text("\n".join([ROW] * 7 + ["{"] + [ROW] * 11 + ["3"]))
    return [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]


@pytest.mark.parametrize("streaming", [False, True])
def test_file_source_skips_up_to_a_share_of_each_file(dirty, streaming):
    with pytest.raises(DataError, match="b.jsonl:8  not valid JSON"):
        examples(LabelledText(train=dirty))
    options = {"train": dirty, "on_bad_data": "skip", "streaming": streaming}
    teacher = LabelledText(**options, max_bad_share=0.1)
    assert len(examples(teacher)) == 38 and "1:8/0" not in examples(teacher)
    (bad,) = teacher.data["train"].bad_data()
    assert (bad.path, bad.n_read, bad.n_skipped) == (dirty[1], 18, 2)
    assert [error.line for error in bad.first] == [8, 20]
    with pytest.raises(DataError) as caught:
        examples(LabelledText(**options, max_bad_share=0.09))
    assert "b.jsonl  2 of 20 examples cannot be read (10.0 %); max_bad_share = 0.09 allows 9 %" in (
        str(caught.value)
    )


def test_file_source_held_out_parts_count_the_whole_file(dirty):
    teacher = LabelledText(train=dirty[1], dev_share=0.2, on_bad_data="skip", max_bad_share=0.1)
    for split in ("train", "dev"):
        assert list(teacher.for_split(split).examples())
        assert teacher.data[split].bad_data()[0].n_read == 18


@pytest.mark.parametrize("label_speaker, n_examples", [("both", 19 * 2), ("B", 19)])
@pytest.mark.parametrize("streaming", [False, True])
def test_file_source_counts_conversations(tmp_path, label_speaker, n_examples, streaming):
    turns = [{"speaker": who, "text": who} for who in "AB"]
    rows = [json.dumps({"turns": turns})] * 19 + ["{"]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(rows))
    options = {"train": str(path), "label_speaker": label_speaker, "streaming": streaming}
    teacher = Conversations(**options, on_bad_data="skip", max_bad_share=0.05)
    assert len(examples(teacher)) == n_examples
    (bad,) = teacher.data["train"].bad_data()
    assert (bad.n_read, bad.n_skipped, bad.share) == (19, 1, 0.05)
    with pytest.raises(DataError, match="1 of 20 conversations cannot be read"):
        examples(Conversations(**options, on_bad_data="skip", max_bad_share=0.04))


@pytest.mark.parametrize("stop", [1, 9, 25, 37])
def test_file_source_resumes_after_skipped_lines(dirty, stop):
    def build():
        options = FileOptions("t", on_bad_data="skip", max_bad_share=0.1)
        source = FileSource(read_labelled_text, dirty, options)
        teacher = Teacher({"train": source}, streaming=True, single_turn=True, shuffle_window=4)
        return teacher.for_split("train", training=True)

    def show(teacher, n_examples):
        ids = []
        while len(ids) < n_examples and not teacher.epoch_done():
            ids.append(teacher.act()["id"])
            teacher.observe(Message(agent="x"))
        return ids

    whole, half, rest = build(), build(), build()
    ids = show(whole, 100)
    assert len(ids) == 38 and show(half, stop) == ids[:stop]
    rest.restore(json.loads(json.dumps(half.state())))
    assert show(rest, 100) == ids[stop:]


def test_file_source_gathers_all_problems(dirty, tmp_path):
    found = {}
    with tolerating(bad_data=found):
        teacher = LabelledText(train=dirty, on_bad_data="error")
        assert len(examples(teacher)) == 38
    assert list(found) == [dirty[1]] and found[dirty[1]].n_problems == 2
    found = {}
    with tolerating(bad_data=found):
        examples(LabelledText(train=dirty, on_bad_data="skip", max_bad_share=0.1))
    assert not found


TALK = '{"turns": [{"speaker": "a", "text": "hi"}, {"speaker": "b", "text": "ho"}]}'
MESSAGES = json.dumps({"messages": [{"role": role, "content": "hi"} for role in
                                    ("user", "assistant")]})  # fmt: skip


@pytest.mark.parametrize("build, text, override", [
    (LabelledText, TALK, "@teachers thincdialog.Conversations.v1"),
    (Conversations, ROW, "@teachers thincdialog.LabelledText.v1"),
    (Conversations, "text:a\tlabels:b", "@teachers thincdialog.ParlAIText.v1"),
    (ParlAIText, "1 a\tb\t\tb|c", "@teachers thincdialog.NumberedText.v1 "
     "--tasks.talk.supporting false"),
    (ParlAIText, "1 a.\n2 b?\tc\t1", "@teachers thincdialog.NumberedText.v1"),
    (NumberedText, TALK, "@teachers thincdialog.Conversations.v1"),
    (LabelledText, MESSAGES, "@teachers thincdialog.JSONLayout.v1 --tasks.talk.layout messages"),
    (partial(JSONLayout, "sharegpt"), MESSAGES,
     "@teachers thincdialog.JSONLayout.v1 --tasks.talk.layout messages"),
    (Conversations, "A: hi\nB: ho\n",
     "@teachers thincdialog.JSONLayout.v1 --tasks.talk.layout speaker-lines"),
])  # fmt: skip
@pytest.mark.parametrize("on_bad_data", ["error", "skip"])
def test_file_source_names_the_teacher_of_another_format(
    build, text, override, on_bad_data, tmp_path
):
    path = tmp_path / ("a.jsonl" if text.startswith("{") else "a.txt")
    path.write_text(f"{text}\n")
    teacher = build(train=str(path), on_bad_data=on_bad_data)
    teacher.set_name("talk")
    with pytest.raises(DataError) as caught:
        examples(teacher)
    assert str(caught.value).endswith(f": --tasks.talk.{override}")
    assert str(caught.value).startswith(f"{path}:1  ")


def test_file_source_suggests_no_other_format_for_broken_data_of_its_own(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "label": ""}\n')
    with pytest.raises(DataError) as caught:
        examples(LabelledText(train=str(path)))
    assert "looks like" not in str(caught.value)
    path.write_text("col,other\n")
    with pytest.raises(DataError) as caught:
        examples(JSONLayout("sgd", train=str(path)))
    assert "looks like" not in str(caught.value)


def test_file_source_describes_a_file_that_fits_no_format(tmp_path):
    path = tmp_path / "movie_lines.txt"
    path.write_bytes("L1 +++$+++ u0 +++$+++ m0 +++$+++ BO +++$+++ é\n".encode("latin-1"))
    with pytest.raises(DataError, match="movie_lines.txt:1  not UTF-8"):
        examples(Conversations(train=str(path)))
    with pytest.raises(DataError, match="looks like Cornell's raw movie lines.*layout convokit"):
        examples(Conversations(train=str(path), encoding="latin-1"))


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("on_bad_data", ["error", "skip"])
@pytest.mark.parametrize("n_bad", [0, 1])
@pytest.mark.parametrize("build", [Conversations, partial(JSONLayout, "own.json")])
def test_file_source_refuses_a_file_without_the_label_speaker(
    tmp_path, monkeypatch, streaming, on_bad_data, n_bad, build
):
    monkeypatch.chdir(tmp_path)
    layout = {"turns": "turns", "speaker": "speaker", "text": "text", "label_speaker": "agent"}
    (tmp_path / "own.json").write_text(json.dumps(layout))
    paths = [write_spoken(tmp_path / "a.jsonl", "agent", "agnt")]
    paths.append(write_spoken(tmp_path / "b.jsonl", *["agnt"] * 30))
    if on_bad_data == "skip":
        with open(paths[1], "a") as file:
            file.write("{\n" * n_bad)
    choices = {"label_speaker": "agent", "streaming": streaming, "on_bad_data": on_bad_data}
    teacher = build(train=paths[:1], **choices)
    assert len(examples(teacher)) == 1
    (left,) = teacher.data["train"].bad_data()
    assert (left.path, left.n_read, left.n_without, left.n_skipped) == (paths[0], 2, 1, 0)
    with pytest.raises(DataError) as caught:
        examples(build(train=paths, **choices))
    assert str(caught.value) == (
        f"{paths[1]}  label_speaker 'agent' does not occur in this file; did you mean 'agnt'?; "
        "speakers here: 'user', 'agnt'"
    )


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_file_source_that_begins_within_a_file_counts_all_of_it(tmp_path, stop):
    """The mark of a position contains the counts before it, and whether the label speaker has
    occurred."""
    path = write_spoken(tmp_path / "a.jsonl", "bot", "agent", "bot", "agent", "agent", "bot")
    options = {"train": path, "label_speaker": "agent", "streaming": True}
    begun, resumed = (Conversations(**options).for_split("train", training=True) for _ in range(2))
    for _ in range(stop):
        begun.act()
        begun.observe(Message(agent="x"))
    resumed.restore(json.loads(json.dumps(begun.state())))
    while not resumed.epoch_done():
        resumed.act()
        resumed.observe(Message(agent="x"))
    (left,) = resumed.data["train"].bad_data()
    assert (left.n_read, left.n_without) == (6, 3)
