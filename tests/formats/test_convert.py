"""Conversion between text formats: everything that is lost is reported."""

import gzip
import json
import re
import tarfile
import zipfile
from collections import Counter

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.processes import slow
from thincdialog.errors import DataError, DialogError, OutputError
from thincdialog.formats.conversations import read_conversations
from thincdialog.formats.convert import WRITERS, convert
from thincdialog.formats.formats import FORMATS
from thincdialog.formats.numbered_text import read_numbered_text
from thincdialog.formats.parlai_text import read_parlai_text
from thincdialog.messages import SILENCE, Message

ODD = st.sampled_from(
    ["a", "é", "語", "😀", " ", "\n", "\t", "|", "\\n", "\\t", "\\", "__PIPE__", '"', ",", ":"]
    + ["\r", "\r\n", "\0", "\ufeff", "\u2028", "\x1c", "\x85", "1 ", "_", "n", "text:", "{"]
)
PLAIN = st.text("ab é語", min_size=1, max_size=6).map(lambda text: f"x{text}x")
TEXTS = st.lists(ODD, max_size=6).map("".join) | PLAIN | st.just(SILENCE)
FIELDS = st.sampled_from(
    ["topic", "label", "Label ", "eval_labels", "candidates", "a:b", "a\tb", ""]
)


@st.composite
def messages(draw):
    n_labels = draw(st.sampled_from([1, 2]))
    labels = draw(st.lists(TEXTS, min_size=1, max_size=n_labels, unique=True))
    extra = {
        "reward": st.sampled_from([1, -1, 0.5, 1e300]),
        "label_candidates": st.lists(TEXTS, max_size=2).map(lambda more: [*labels, *more]),
        draw(FIELDS): TEXTS | st.just({"a": 1}),
        "source_id": TEXTS,
    }
    names = draw(st.just([]) | st.sampled_from(sorted(extra)).map(lambda name: [name]))
    return Message(text=draw(TEXTS), labels=labels, **{name: draw(extra[name]) for name in names})


EPISODES = st.lists(messages(), min_size=1, max_size=3) | st.lists(
    messages(), min_size=1, max_size=1
)


def read(name, path):
    """Return the examples of a file, without the ids that the reader adds."""
    speaker = {"label_speaker": "B"} if name == "conversations" else {}
    found = [list(map(dict, one)) for one in FORMATS[name](str(path), **speaker)]
    for row in (row for rows in found for row in rows):
        row.pop("id")
    return found


@pytest.mark.parametrize("name", [slow("parlai"), "conversations", slow("jsonl")])
@given(episode=EPISODES)
@example(episode=[Message(text="\ufeffa\u2028b", labels=["c\x85"])])
@example(episode=[Message(text="a", labels=["b"], topic="c\r"), Message(text="a", labels=["b"])])
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_written_episodes_are_read_back_unchanged_or_refused(name, episode, tmp_path):
    path = tmp_path / ("data.txt" if name == "parlai" else "data.jsonl")
    if name == "conversations":
        for message in episode:
            message.pop("source_id", None)
    try:
        lines = WRITERS[name](episode, "1")
    except ValueError as error:
        assert "\n" not in str(error)
        return
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    assert read(name, path) == [list(map(dict, episode))]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("text", ["plain", "two\nlines", "a|b", 'say "a, b"', "語 😀", "é\u2028."])
def test_plain_texts_can_be_written(name, text):
    assert WRITERS[name]([Message(text=text, labels=[text])], "1")


@pytest.mark.parametrize("start", WRITERS)
def test_convert_writes_plain_examples_in_all_formats(start, tmp_path):
    corpus = [[{"text": f"text {n}", "labels": [f"label {n}"]}] for n in range(3)]
    one = tmp_path / ("one.txt" if start == "parlai" else "one.jsonl")
    lines = [line for n, row in enumerate(corpus) for line in WRITERS[start](row, str(n))]
    one.write_text("".join(f"{line}\n" for line in lines))
    for target in WRITERS:
        two = tmp_path / f"two-{target}"
        done = convert(one, two, to_format=target, label_speaker="B", drop=["id"])
        assert done.from_format == start and done.was_guessed
        assert done.n_episodes == 3
        assert read(target, two.rename(two.with_suffix(".jsonl"))) == corpus


def test_convert_between_conversations_keeps_everything(tmp_path):
    rows = [
        {"id": "a", "mood": [1], "turns": [
            {"speaker": "x", "text": "hi", "act": {"k": 1}},
            {"speaker": "x", "text": "there"},
            {"speaker": "y", "text": "é\n|\t", "n": None},
        ]},
        {"turns": []},
    ]  # fmt: skip
    one, two, three = (tmp_path / name for name in ("1.jsonl.gz", "2.jsonl.gz", "3.jsonl"))
    one.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    done = convert(one, two, to_format="conversations")
    assert (done.n_episodes, done.n_examples, done.left_out) == (2, 3, {})
    with gzip.open(two, "rt") as stream:
        assert [json.loads(line) for line in stream] == rows
    turns = [[{"id": "context", "text": "c"}, {"id": "x", "text": "y", "act": 1}]]
    three.write_text(json.dumps({"dialog": turns}))
    done = convert(three, two, to_format="conversations", force=True)
    assert done.left_out == {"turns of the speaker 'context'": 1} and done.n_examples == 1
    with gzip.open(two, "rt") as stream:
        assert json.load(stream) == {"turns": [{"speaker": "x", "text": "y", "act": 1}]}
    dropped = convert(one, two, to_format="conversations", drop=["act", "mood", "n"], force=True)
    assert b"act" not in gzip.decompress(two.read_bytes()) and dropped.n_examples == 3
    three.write_text('{"dialog": [[{"id": "a", "text": "b", "speaker": 1}]]}')
    with pytest.raises(DataError, match="3.jsonl:1  turn 1: the field 'speaker' has another mean"):
        convert(three, two, to_format="conversations", force=True)


CHAT = "A: {}1?\nB: {}2.\n"


@pytest.mark.parametrize("pack", ["folder", "pattern", "list"])
def test_convert_takes_the_same_paths_as_teachers(tmp_path, pack):
    """It takes several files, compressed or not. The ids are the same as those of a teacher."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.txt").write_text(CHAT.format("a", "a"))
    (folder / "b.txt.gz").write_bytes(gzip.compress(CHAT.format("b", "b").encode()))
    with zipfile.ZipFile(folder / "c.zip", "w") as archive:
        archive.writestr("c.txt", CHAT.format("c", "c"))
    paths = sorted(map(str, folder.iterdir()))
    source = {"folder": folder, "pattern": str(folder / "*"), "list": paths}[pack]
    done = convert(source, tmp_path / "d.jsonl", to_format="conversations")
    assert (done.from_format, done.n_episodes, done.n_examples) == ("speaker-lines", 3, 6)
    rows = list(map(json.loads, (tmp_path / "d.jsonl").read_text().splitlines()))
    assert [(row["id"], row["turns"][0]["text"]) for row in rows] == [
        ("1", "a1?"), ("1:1", "b1?"), ("2:1", "c1?"),
    ]  # fmt: skip
    done = convert(source, tmp_path / "e.txt", to_format="parlai", label_speaker="B")
    ids = re.findall("id:(.*?)\t", (tmp_path / "e.txt").read_text())
    assert ids == ["1/0", "1:1/0", "2:1/0"]
    (folder / "c.zip").write_bytes(b"\0")
    with pytest.raises(DataError, match="c.zip"):
        convert(source, tmp_path / "f.txt", to_format="parlai")
    with pytest.raises(OutputError, match="is read by this command"):
        convert(source, folder / "a.txt", to_format="parlai", force=True)


def test_convert_names_another_spelling_of_the_label_speaker(tmp_path, written):
    path = written("A: one?\nB: two.\n\na: three?\nB: four.\n", "a.txt")
    said = {"from_format": "speaker-lines", "to_format": "parlai", "label_speaker": "A"}
    wanted = "a.txt:4  conversation '4': the speaker 'a' differs from 'A' only by case or blanks"
    with pytest.raises(DataError, match=wanted):
        convert(path, tmp_path / "b.txt", **said)
    done = convert(path, tmp_path / "b.txt", skip=True, **said)
    assert (done.n_episodes, done.bad.n_skipped) == (1, 1)
    # Conversations are written with their speakers as they are spelled.
    said = {"from_format": "speaker-lines", "to_format": "conversations"}
    assert convert(path, tmp_path / "b.jsonl", **said).n_episodes == 2


def test_convert_names_the_columns_of_a_parquet_file_that_it_cannot_read(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path, turns = tmp_path / "a.parquet", [{"role": "user", "content": "hi"}]
    turns.append({"role": "assistant", "content": "ho"})
    parquet.write_table(pyarrow.Table.from_pylist([{"messages": turns}]), path)
    done = convert(path, tmp_path / "b.jsonl", to_format="conversations")
    assert (done.from_format, done.n_examples) == ("messages", 2)
    parquet.write_table(pyarrow.Table.from_pylist([{"text": "a", "topic": "b"}]), path)
    with pytest.raises(DataError, match="has the columns 'text', 'topic', .* such as messages"):
        convert(path, tmp_path / "c.jsonl", to_format="jsonl")


def test_convert_says_what_it_leaves_out(tmp_path):
    turns = [{"speaker": who, "text": who} for who in "ABBAA"]
    (tmp_path / "1.jsonl").write_text(json.dumps({"id": 7, "topic": "t", "turns": turns}))
    done = convert(tmp_path / "1.jsonl", tmp_path / "1.txt", to_format="parlai")
    assert done.left_out == {
        "names of speakers": 1,
        "the field 'topic' of conversations": 1,
        "boundaries between joined turns": 2,
        "turns without an answer": 1,
    }
    assert (tmp_path / "1.txt").read_text() == "id:7/0\ttext:A\tlabels:B\\nB\tepisode_done:True\n"
    (tmp_path / "2.txt").write_text("1 a\tb\n2 statement\n1 c\td\n2 statement\n")
    done = convert(tmp_path / "2.txt", tmp_path / "3.txt", to_format="parlai")
    assert done.left_out == {"statements after the last question": 2}


@pytest.mark.parametrize(
    "content, target, words",
    [
        ("text:a\tlabels:b|c", "conversations",
         "the format holds one label, but there are 2; --drop labels keeps"),
        ("text:a\tlabels:b\ttopic:t\treward:1", "conversations",
         "'reward'; --drop reward,topic leaves"),
        ("text:a\tlabels:b\ntext:c\tlabels:d", "jsonl",
         "the format holds one turn, but there are 2; --drop history separates"),
    ],
)  # fmt: skip
def test_convert_names_what_to_drop(tmp_path, written, content, target, words):
    one, two = written(content), tmp_path / "two.txt"
    with pytest.raises(DataError, match=f"example '0/0' does not fit into.*{words}") as caught:
        convert(one, two, to_format=target)
    drop = str(caught.value).partition("--drop ")[2].split()[0].strip(";").split(",")
    done = convert(one, two, to_format=target, drop=drop)
    assert done.n_examples == 1 + content.count("\n")


@pytest.mark.parametrize(
    "target, text, words",
    [
        (
            "parlai",
            "a\\nb",
            r"'text' 'a\\\\nb' would be read as 'a\\nb' \(in this format, .n, .t and __PIPE",
        ),
        ("parlai", "a\0b", "it has a NUL"),
    ],
)
def test_convert_names_the_text_that_does_not_fit(tmp_path, written, target, text, words):
    path = written([{"text": text, "label": "x"} for text in ("good", text)], "1.jsonl")
    with pytest.raises(DataError, match=f"1.jsonl  example '2/0' does not fit into.*{words}"):
        convert(path, tmp_path / "2", to_format=target)
    assert list(map(str, tmp_path.iterdir())) == [path]
    done = convert(path, tmp_path / "2", to_format=target, skip=True)
    assert (done.n_examples, done.bad.n_read, done.bad.n_skipped) == (1, 1, 1)
    assert "example '2/0' does not fit into" in done.bad.summary()


@pytest.mark.parametrize(
    "start, target, lines, skipped, unit, left",
    [
        ("jsonl", "jsonl", ['{"text": "a", "label": "x"}', "{", '{"text": "b", "label": "y"}', "3"],
         [2, 4], "examples", '{"text": "a", "label": "x"}\n{"text": "b", "label": "y"}\n'),
        ("parlai", "jsonl", ["text:a\tlabels:x\tepisode_done:True", "what?\tepisode_done:True"],
         [2], "episodes", '{"text": "a", "label": "x"}\n'),
        ("parlai-conversations", "conversations",
         ['{"dialog": [[{"id": "A", "text": "a"}]]}', '{"turns": 3}', "no"], [2, 3],
         "conversations", '{"turns": [{"speaker": "A", "text": "a"}]}\n'),
        ("messages", "parlai", ['{"messages": [{"role": "user"}]}', json.dumps({"messages": [
            {"role": who, "content": who} for who in ("user", "assistant")]})], [1],
         "conversations", "text:user\tlabels:assistant\tepisode_done:True\n"),
    ],
)  # fmt: skip
def test_convert_skips_unreadable_episodes(
    tmp_path, written, start, target, lines, skipped, unit, left
):
    path = written("\n".join(lines), "in.jsonl")
    options = {"from_format": start, "to_format": target}
    with pytest.raises(DataError, match=f"in.jsonl:{skipped[0]}  "):
        convert(path, tmp_path / "out", **options)
    done = convert(path, tmp_path / "out", skip=True, **options)
    assert (tmp_path / "out").read_text() == left
    assert [error.line for error in done.bad.first] == skipped
    n = len(skipped)
    assert f"in.jsonl  {n} of {len(lines)} {unit} skipped" in done.bad.summary()
    good = [line for number, line in enumerate(lines, start=1) if number in skipped]
    with pytest.raises(DataError, match="nothing is left to write: .*bad.jsonl:1  "):
        convert(written("\n".join(good), "bad.jsonl"), tmp_path / "none", skip=True, **options)
    assert not (tmp_path / "none").exists()


def test_convert_writes_all_or_nothing(tmp_path):
    good, bad, out = tmp_path / "good.txt", tmp_path / "bad.txt", tmp_path / "to" / "out.jsonl.gz"
    good.write_text("text:a\tlabels:b\tepisode_done:True\n" * 3)
    bad.write_text("text:a\tlabels:b\tepisode_done:True\nno field\n")
    convert(good, out, to_format="jsonl")
    before = out.read_bytes()
    assert gzip.decompress(before).decode() == '{"text": "a", "label": "b"}\n' * 3
    with pytest.raises(OutputError, match="out.jsonl.gz  already exists"):
        convert(good, out, to_format="jsonl")
    with pytest.raises(DataError, match="bad.txt:2  expected key:value"):
        convert(bad, out, to_format="jsonl", force=True)
    assert out.read_bytes() == before and list(out.parent.iterdir()) == [out]
    convert(good, out, to_format="jsonl", force=True)
    assert out.read_bytes() == before


def test_convert_refuses_unknown_formats_and_files_that_fit_none(tmp_path, written):
    path = written("just a text\n", "what.txt")
    expected = "what.txt:1  its format cannot be guessed from its beginning, 'just a"
    with pytest.raises(DataError, match=expected):
        convert(path, tmp_path / "x", to_format="parlai")
    with pytest.raises(DialogError, match="needs a format: give one of parlai"):
        convert(path, tmp_path / "x")
    with pytest.raises(DialogError, match="no format 'parlay' for writing; did you mean 'parlai'"):
        convert(path, tmp_path / "x", to_format="parlay")
    with pytest.raises(DialogError, match="no format 'csv' for writing .choose from: parlai, conv"):
        convert(path, tmp_path / "x", to_format="csv")


def pairs(episodes):
    return Counter((m["text"], tuple(m["labels"])) for episode in episodes for m in episode)


@pytest.mark.slow
def test_convert_real_conversations_to_parlai_and_back(data, tmp_path):
    source = str(data / "sgd" / "test.jsonl.gz")
    text, back = tmp_path / "data.txt", tmp_path / "data.jsonl.gz"
    done = convert(source, text, to_format="parlai", label_speaker="system")
    given_episodes = list(read_conversations(source, "system"))
    assert done.n_examples == sum(map(len, given_episodes))
    assert pairs(read_parlai_text(str(text))) == pairs(given_episodes)
    convert(text, back, to_format="conversations")
    assert list(read_conversations(str(back), "B")) == given_episodes


ARCHIVES = {
    "babi": "babi_qa/babi_tasks_1-20_v1-2_en.tar.gz",
    "fbdialog": "babi_dialog/dialog-bAbI-tasks.tar.gz",
}


@pytest.mark.parametrize(
    "name, wanted, n_files",
    [
        ("babi", "/en/qa4_.*test", 1),
        pytest.param("babi", "/en/qa.*test", 20, marks=pytest.mark.slow),
        pytest.param("fbdialog", "-task.*dev", 6, marks=pytest.mark.slow),
    ],
)
def test_convert_babi_files(data, tmp_path, name, wanted, n_files):
    one, two = (tmp_path / part for part in ("1.txt", "2.txt"))
    with tarfile.open(data / ARCHIVES[name]) as files:
        members = [member for member in files if re.search(wanted, member.name)]
        contents = [files.extractfile(member).read() for member in members]
    assert len(contents) == n_files
    said = {"from_format": name, "force": True, "drop": ["supporting"]}
    for content in contents:
        one.write_bytes(content)
        done = convert(one, two, to_format="parlai", **said)
        episodes = list(read_numbered_text(str(one), name == "babi"))
        assert done.n_examples == sum(map(len, episodes))
        assert pairs(read_parlai_text(str(two))) == pairs(episodes)


def test_convert_keeps_speakers_and_unanswered_turns_of_a_layout(tmp_path, written):
    said = [("system", "Be kind."), ("user", "hi"), ("user", "there"), ("assistant", "hello"),
            ("user", "bye")]  # fmt: skip
    path = written(
        [{"messages": [{"role": who, "content": text} for who, text in said]}], "a.jsonl"
    )
    done = convert(path, tmp_path / "b.jsonl", from_format="messages", to_format="conversations")
    assert (done.n_episodes, done.n_examples, done.unit) == (1, 4, "turn")
    (row,) = map(json.loads, (tmp_path / "b.jsonl").read_text().splitlines())
    turns = [{"speaker": who, "text": text} for who, text in said[1:]]
    assert row == {"id": "0", "turns": turns, "system": "Be kind."}
    rows = "talk,who,text\n7,ann,a\n7,bob,b\n7,cem,c\n8,ann,d\n"
    layout = written("group: talk\nspeaker: who\n", "own.yml")
    convert(written(rows, "a.csv"), tmp_path / "c.jsonl", from_format=layout,
            to_format="conversations", drop=["system"])  # fmt: skip
    rows = list(map(json.loads, (tmp_path / "c.jsonl").read_text().splitlines()))
    assert [row["id"] for row in rows] == ["7", "8"]
    found = [[turn["speaker"] for turn in row["turns"]] for row in rows]
    assert found == [["ann", "bob", "cem"], ["ann"]]


def test_convert_guesses_json_lines_by_the_text_field(tmp_path, written):
    path, out = written('{"q": "a", "y": "x"}\n', "a.jsonl"), tmp_path / "out.jsonl"
    with pytest.raises(
        DataError, match="its format cannot be guessed .*: name the format with --from"
    ):
        convert(path, out, to_format="jsonl")
    convert(path, out, to_format="jsonl", text_field="q", label_field="y")
    assert out.read_text() == '{"text": "a", "label": "x"}\n'


def test_convert_guesses_a_table_by_its_columns_in_its_encoding(tmp_path):
    rows, out = tmp_path / "rows.csv", tmp_path / "out.jsonl"
    rows.write_bytes("conversation_id,speaker,text\n1,Ed,grün\n1,Flo,b\n".encode("cp1252"))
    done = convert(rows, out, to_format="conversations", encoding="cp1252")
    assert (done.from_format, done.n_examples) == ("rows", 2)
    # Errors about a table of labelled texts do not change.
    rows.write_text("text,label\na,\nb,x\n")
    with pytest.raises(DataError, match=f"^{rows}:2  'label' is empty"):
        convert(rows, out, to_format="jsonl", force=True)
