"""Conversion between text formats: nothing is lost without a word."""

import gzip
import json
import re
import tarfile
from collections import Counter

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from tests.formats.test_formats import NAMES, held, read, write
from thincdialog.errors import DataError, DialogError, OutputError
from thincdialog.formats.conversations import read_conversations
from thincdialog.formats.convert import convert
from thincdialog.formats.formats import CONVERSATIONS, FORMATS
from thincdialog.formats.numbered_text import read_numbered_text
from thincdialog.formats.parlai_text import read_parlai_text
from thincdialog.messages import SILENCE, Message

ODD = st.sampled_from(
    ["a", "é", "語", "😀", " ", "\n", "\t", "|", "\\n", "\\t", "\\", "__PIPE__", '"', ",", ":"]
    + ["\r", "\r\n", "\0", "\ufeff", "\u2028", "\x1c", "\x85", "1 ", "_", "n", "text:", "{"]
)
PLAIN = st.text("ab é語", min_size=1, max_size=6).map(lambda text: f"x{text}x")
TEXTS = st.lists(ODD, max_size=6).map("".join) | PLAIN | st.just(SILENCE)


@st.composite
def messages(draw):
    labels = draw(st.lists(TEXTS, min_size=1, max_size=draw(st.sampled_from([1, 2]))))
    extra = {
        "reward": st.sampled_from([1, -1, 0.5, 1e300]),
        "label_candidates": st.lists(TEXTS, max_size=2).map(lambda more: [*labels, *more]),
        "topic": TEXTS,
        "source_id": TEXTS,
    }
    names = draw(st.just([]) | st.sampled_from(sorted(extra)).map(lambda name: [name]))
    others = {name: draw(extra[name]) for name in names}
    return Message(text=draw(TEXTS), labels=labels, **others)


EPISODES = st.lists(messages(), min_size=1, max_size=3) | st.lists(
    messages(), min_size=1, max_size=1
)


def carried(corpus, name):
    """What of examples a format has a place for; ids are no part of them."""

    def has_place(field, value):
        is_none = field == "source_id" or (field, value) == ("reward", 0)
        return field in (FORMATS[name].fields or [field]) and not is_none

    return [
        [{field: row[field] for field in row if has_place(field, row[field])} for row in rows]
        for rows in corpus
    ]


@pytest.mark.slow
@pytest.mark.parametrize("start", FORMATS)
@given(
    corpus=st.lists(EPISODES, min_size=1, max_size=3),
    target=st.sampled_from(sorted(FORMATS)),
    skip=st.booleans(),
)
@example(corpus=[[Message(text="\ufeffa\u2028b", labels=["c\x85"])]], target="parlai", skip=False)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_convert_carries_all_or_says_why_not(start, corpus, target, skip, tmp_path):
    episodes = held(corpus, start)
    assume(episodes)
    names = enumerate((start, target, start))
    one, two, three = (tmp_path / f"{n}-{NAMES[name]}" for n, name in names)
    two.unlink(missing_ok=True)
    write(one, episodes, start)
    for number, episode in enumerate(episodes if start in CONVERSATIONS else (), start=1):
        for turn, message in enumerate(episode):
            message["source_id"] = f"{number}/{turn}"
    # A format holds what it says that it holds.
    assert read(start, one) == episodes
    said = {"label_speaker": "B", "force": True}
    try:
        done = convert(one, two, from_format=start, to_format=target, skip=skip, **said)
    except DataError as error:
        assert not two.exists()
        text = str(error)
        assert text.startswith(str(one)) and "\n" not in text and len(text) < 700
        assert "does not fit into" in text or "nothing is left" in text or "place for" in text
        return
    found = read(target, two)
    assert len(found) == done.n_episodes == len(episodes) - done.n_skipped
    assert skip or not done.n_skipped
    if not done.n_skipped:
        # Nothing was lost but ids.
        wanted = carried(episodes, target)
        assert carried(found, target) == carried(episodes, start) == wanted
        # And back again.
        convert(two, three, from_format=target, to_format=start, **said)
        assert carried(read(start, three), target) == wanted


@pytest.mark.parametrize("start", FORMATS)
def test_convert_holds_plain_examples_in_all_formats(start, tmp_path):
    corpus = [[Message(text=f"text {n}", labels=[f"label {n}"])] for n in range(3)]
    one = tmp_path / f"one-{NAMES[start]}"
    write(one, corpus, start)
    for target in FORMATS:
        two = tmp_path / f"{target}-{NAMES[target]}"
        done = convert(one, two, to_format=target, label_speaker="B")
        # Numbered lines without a third column are fbdialog's as well as bAbI's.
        assert done.from_format == ("fbdialog" if start == "babi" else start) and done.was_guessed
        assert (done.n_episodes, done.n_skipped) == (3, 0)
        assert carried(read(target, two), "csv") == corpus


def test_convert_between_conversations_keeps_everything(tmp_path):
    rows = [
        {"id": "a", "mood": [1], "turns": [
            {"speaker": "x", "text": "hi", "act": {"k": 1}},
            {"speaker": "x", "text": "there"},
            {"speaker": "y", "text": "é\n|\t", "n": None},
        ]},
        {"turns": []},
    ]  # fmt: skip
    one, two, three = (tmp_path / name for name in ("1.jsonl.gz", "2.jsonl", "3.jsonl.gz"))
    one.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    done = convert(one, two, to_format="parlai-conversations")
    assert (done.n_episodes, done.n_examples, done.left_out) == (2, 3, {})
    first = json.loads(two.read_text().split("\n")[0])
    assert first["dialog"][0][0] == {"id": "x", "text": "hi", "act": {"k": 1}}
    assert [len(pair) for pair in first["dialog"]] == [2, 1]
    convert(two, three, to_format="conversations")
    with gzip.open(three, "rt") as stream:
        assert [json.loads(line) for line in stream] == rows
    two.write_text('{"dialog": [[{"id": "context", "text": "c"}, {"id": "x", "text": "y"}]]}')
    done = convert(two, three, to_format="conversations", force=True)
    assert done.left_out == {"turns of the speaker 'context'": 1} and done.n_examples == 1
    dropped = convert(one, two, to_format="conversations", drop=["act", "mood", "n"], force=True)
    assert "act" not in two.read_text() and dropped.n_examples == 3


@pytest.mark.parametrize(
    "row, words",
    [
        ({"turns": [{"speaker": "a", "text": "b", "id": 1}]}, "turn 1: the field 'id' has another"),
        ({"turns": [{"speaker": "context", "text": "b"}]}, "turn 1: the name has another meaning"),
    ],
)
def test_convert_between_conversations_names_what_would_be_lost(tmp_path, written, row, words):
    path = written([row], "1.jsonl")
    with pytest.raises(DataError, match=f"1.jsonl:1  {words}"):
        convert(path, tmp_path / "2.jsonl", to_format="parlai-conversations")


def test_convert_says_what_it_leaves_out(tmp_path):
    turns = [{"speaker": who, "text": who} for who in "ABBAA"]
    (tmp_path / "1.jsonl").write_text(json.dumps({"id": 7, "topic": "t", "turns": turns}))
    done = convert(tmp_path / "1.jsonl", tmp_path / "1.txt", to_format="parlai")
    assert done.left_out == {
        "names of speakers": 1,
        "the field 'topic' of conversations": 1,
        "borders between turns that are joined to one": 2,
        "turns that nobody answers": 1,
    }
    assert (tmp_path / "1.txt").read_text() == "id:7/0\ttext:A\tlabels:B\\nB\tepisode_done:True\n"
    (tmp_path / "2.txt").write_text("1 a\tb\n2 statement\n1 c\td\n2 statement\n")
    done = convert(tmp_path / "2.txt", tmp_path / "3.txt", to_format="parlai")
    assert done.left_out == {"statements that no question follows": 2}


@pytest.mark.parametrize(
    "content, target, words",
    [
        ("text:a\tlabels:b|c", "conversations", "it has 2 labels.*--drop labels keeps"),
        ("text:a\tlabels:b\ttopic:t\treward:1", "csv", "'reward'; --drop reward,topic leaves"),
        ("text:a\tlabels:b\ntext:c\tlabels:d", "tsv", "it has 2 turns.*--drop history cuts"),
    ],
)
def test_convert_names_what_to_drop(tmp_path, written, content, target, words):
    one, two = written(content), tmp_path / "two.txt"
    with pytest.raises(DataError, match=f"example '0/0' does not fit into.*{words}") as caught:
        convert(one, two, to_format=target)
    drop = str(caught.value).partition("--drop ")[2].split()[0].strip(";").split(",")
    done = convert(one, two, to_format=target, drop=drop)
    assert done.n_examples == 1 + content.count("\n") and done.n_skipped == 0


def test_convert_takes_blanks_off_the_ends_when_told(tmp_path, written):
    one, two = written("text: a \\n b\tlabels: c |d\n"), tmp_path / "two.txt"
    with pytest.raises(DataError, match="--drop blanks takes them off"):
        convert(one, two, to_format="fbdialog")
    convert(one, two, to_format="fbdialog", drop=["blanks"])
    assert two.read_text() == "1 a\n2 b\tc|d\n"


@pytest.mark.parametrize(
    "target, text, words",
    [
        ("parlai", "a\\nb", r"'text' 'a\\\\nb' would be read as 'a\\nb' \(in it .n, .t and __PIPE"),
        ("fbdialog", " a", r"'text' ' a' would be read as 'a' \(in it"),
        ("tsv", "a\tb", "in it are no tabs"),
        ("csv", "a\r\nb", "CR before a line end"),
    ],
)
def test_convert_names_the_text_that_does_not_fit(tmp_path, written, target, text, words):
    path = written([{"text": text, "label": "x"} for text in ("good", text)], "1.jsonl")
    with pytest.raises(DataError, match=f"1.jsonl  example '2/0' does not fit into.*{words}"):
        convert(path, tmp_path / "2", to_format=target)
    assert list(map(str, tmp_path.iterdir())) == [path]
    done = convert(path, tmp_path / "2", to_format=target, skip=True)
    assert (done.n_examples, done.n_skipped) == (1, 1) and "example '2/0'" in done.first_skipped


@pytest.mark.parametrize(
    "start, target, lines, skipped, unit, left",
    [
        ("jsonl", "csv", ['{"text": "a", "label": "x"}', "{", '{"text": "b", "label": "y"}', "3"],
         [2, 4], "examples", "text,label\na,x\nb,y\n"),
        ("parlai", "tsv", ["text:a\tlabels:x\tepisode_done:True", "what?\tepisode_done:True"],
         [2], "episodes", "text\tlabel\na\tx\n"),
        ("conversations", "parlai-conversations",
         ['{"turns": [{"speaker": "A", "text": "a"}]}', '{"turns": 3}', "no"], [2, 3],
         "conversations", '{"dialog": [[{"id": "A", "text": "a"}]]}\n'),
        ("messages", "parlai", ['{"messages": [{"role": "user"}]}', json.dumps({"messages": [
            {"role": who, "content": who} for who in ("user", "assistant")]})], [1],
         "conversations", "text:user\tlabels:assistant\tepisode_done:True\n"),
    ],
)  # fmt: skip
def test_convert_skips_what_cannot_be_read(
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


def test_convert_writes_whole_or_not_at_all(tmp_path):
    good, bad, out = tmp_path / "good.txt", tmp_path / "bad.txt", tmp_path / "to" / "out.csv.gz"
    good.write_text("text:a\tlabels:b\tepisode_done:True\n" * 3)
    bad.write_text("text:a\tlabels:b\tepisode_done:True\nno field\n")
    convert(good, out)
    before = out.read_bytes()
    assert gzip.decompress(before).decode() == "text,label\n" + "a,b\n" * 3
    with pytest.raises(OutputError, match="out.csv.gz  is there already"):
        convert(good, out)
    with pytest.raises(DataError, match="bad.txt:2  expected key:value"):
        convert(bad, out, force=True)
    assert out.read_bytes() == before and list(out.parent.iterdir()) == [out]
    convert(good, out, force=True)
    assert out.read_bytes() == before


def test_convert_refuses_names_and_files_that_tell_nothing(tmp_path, written):
    path = written("just a text\n", "what.txt")
    with pytest.raises(DataError, match="what.txt:1  its format cannot be told, it begins 'just a"):
        convert(path, tmp_path / "x", to_format="parlai")
    with pytest.raises(DialogError, match="tells no format: give one of parlai"):
        convert(path, tmp_path / "x")
    with pytest.raises(DialogError, match="no format 'parlay'; did you mean 'parlai'"):
        convert(path, tmp_path / "x", to_format="parlay")


def pairs(episodes):
    return Counter((m["text"], tuple(m["labels"])) for episode in episodes for m in episode)


@pytest.mark.slow
def test_convert_real_conversations_to_parlai_and_back(data, tmp_path):
    source = str(data / "sgd" / "test.jsonl.gz")
    text, back = tmp_path / "data.txt", tmp_path / "data.jsonl.gz"
    done = convert(source, text, to_format="parlai", label_speaker="system")
    given_episodes = list(read_conversations(source, "system"))
    assert done.n_examples == sum(map(len, given_episodes)) and done.n_skipped == 0
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
def test_convert_babi_files_to_themselves(data, tmp_path, name, wanted, n_files):
    """Numbered lines become the same numbered lines, through ParlAI's text as well."""
    one, two, three = (tmp_path / part for part in ("1.txt", "2.txt", "3.txt"))
    with tarfile.open(data / ARCHIVES[name]) as files:
        members = [member for member in files if re.search(wanted, member.name)]
        contents = [files.extractfile(member).read() for member in members]
    assert len(contents) == n_files
    said = {"from_format": name, "force": True}
    for content in contents:
        one.write_bytes(content)
        first = convert(one, two, to_format=name, **said)
        episodes = list(read_numbered_text(str(one), name == "babi"))
        assert list(read_numbered_text(str(two), name == "babi")) == episodes
        second = convert(two, three, to_format="parlai", drop=["supporting"], **said)
        assert first.n_examples == second.n_examples == sum(map(len, episodes))
        assert pairs(read_parlai_text(str(three))) == pairs(episodes)


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
            to_format="parlai-conversations", drop=["system"])  # fmt: skip
    rows = list(map(json.loads, (tmp_path / "c.jsonl").read_text().splitlines()))
    assert [row["id"] for row in rows] == ["7", "8"]
    found = [[turn["id"] for pair in row["dialog"] for turn in pair] for row in rows]
    assert found == [["ann", "bob", "cem"], ["ann"]]
