"""Conversion between text formats: nothing is lost without a word."""

import gzip
import json
import tarfile
from collections import Counter

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from thincdialog.errors import DataError, DialogError, OutputError
from thincdialog.formats.conversations import read_conversations
from thincdialog.formats.convert import convert
from thincdialog.formats.formats import CONVERSATIONS, FORMATS, why_not_held
from thincdialog.formats.guessing import guess_format
from thincdialog.formats.numbered_text import read_numbered_text
from thincdialog.formats.parlai_text import read_parlai_text
from thincdialog.messages import SILENCE, Message

NAMES = {
    name: f"data.{name}" if name in ("csv", "tsv", "jsonl") else "data.txt" for name in FORMATS
}
TEXTS = st.lists(
    st.sampled_from(
        ["a", "é", "語", "😀", " ", "\n", "\t", "|", "\\n", "\\t", "\\", "__PIPE__", '"', ",", ":"]
        + ["\r", "\r\n", "\0", "\ufeff", "\u2028", "\x1c", "\x85", "1 ", "_", "n", "text:", "{"]
    ),
    max_size=6,
).map("".join)
PLAIN = st.text("ab é語", min_size=1, max_size=6).map(lambda text: f"x{text}x")
ANY_TEXT = TEXTS | PLAIN | st.just(SILENCE)


@st.composite
def messages(draw, texts=ANY_TEXT):
    labels = draw(st.lists(texts, min_size=1, max_size=2) | st.lists(texts, min_size=1, max_size=1))
    message = Message(text=draw(texts), labels=labels)
    if draw(st.booleans()):
        extra = {
            "reward": st.sampled_from([1, -1, 0.5, 1e300]),
            "label_candidates": st.lists(texts, max_size=2).map(lambda more: [*labels, *more]),
            "topic": texts,
            "source_id": texts,
        }
        name = draw(st.sampled_from(sorted(extra)))
        message[name] = draw(extra[name])
    return message


def corpora(texts=ANY_TEXT):
    episode = st.lists(messages(texts), min_size=1, max_size=3)
    return st.lists(
        episode | st.lists(messages(texts), min_size=1, max_size=1), min_size=1, max_size=3
    )


def read(name, path):
    """The examples of a file, without what is no part of an example."""
    speaker = {"label_speaker": "B"} if "label_speaker" in FORMATS[name].takes else {}
    found = []
    for episode in FORMATS[name].read(str(path), **speaker):
        rows = []
        for message in episode:
            row = dict(message)
            number = row.pop("id")
            if FORMATS[name].has_ids:
                row["source_id"] = number
            rows.append(row)
        found.append(rows)
    return found


def held(episodes, name):
    """Those episodes that a format can hold, each with the least that it must hold."""
    form = FORMATS[name]
    kept = []
    for episode in episodes:
        episode = [Message(m, labels=m["labels"][: form.n_labels or None]) for m in episode]
        for message in episode:
            for field in set(message) - set(form.fields or message):
                del message[field]
            if name in CONVERSATIONS:
                message.pop("source_id", None)
        if form.n_turns and (len(episode) > 1 or not all(episode[0]["labels"])):
            continue
        if not why_not_held(episode, form.lines(episode, "1"), name):
            kept.append(episode)
    return kept


def write(path, episodes, name):
    form = FORMATS[name]
    lines = [form.header] if form.header else []
    for number, episode in enumerate(episodes, start=1):
        lines += form.lines(episode, str(number))
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


@pytest.mark.parametrize("name", FORMATS)
@given(corpus=corpora())
@example(corpus=[[Message(text="\ufeffa\u2028b", labels=["c\x85"])]])
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_formats_hold_what_they_say_they_hold(name, corpus, tmp_path):
    episodes = held(corpus, name)
    assume(episodes)
    path = tmp_path / NAMES[name]
    write(path, episodes, name)
    wanted = [[dict(message) for message in episode] for episode in episodes]
    if name in CONVERSATIONS:
        for number, episode in enumerate(wanted, start=1):
            for turn, message in enumerate(episode):
                message["source_id"] = f"{number}/{turn}"
    assert read(name, path) == wanted


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("text", ["plain", "two\nlines", "a|b", 'say "a, b"', "語 😀", "é\u2028."])
def test_formats_hold_what_they_should(name, text):
    # The line end in TSV is the one thing of these that a format has no place for.
    label = "x" if text == "a|b" and name in ("fbdialog", "babi") else text
    episode = [Message(text=text, labels=[label])]
    is_held = not (name == "tsv" and "\n" in text)
    assert (held([episode], name) == [episode]) == is_held


def carried(rows, form):
    """What of examples a format has a place for."""
    kept = []
    for row in rows:
        kept.append(
            {
                field: value
                for field, value in row.items()
                if (form.fields is None or field in form.fields)
                and field != "source_id"
                and not (field == "reward" and value == 0)
            }
        )
    return kept


@pytest.mark.parametrize("start", FORMATS)
@given(corpus=corpora(), target=st.sampled_from(sorted(FORMATS)), skip=st.booleans())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_convert_carries_all_or_says_why_not(start, corpus, target, skip, tmp_path):
    episodes = held(corpus, start)
    assume(episodes)
    one, two, three = tmp_path / "one", tmp_path / "two", tmp_path / "three"
    for folder in (one, two, three):
        folder.mkdir(exist_ok=True)
    one, two, three = one / NAMES[start], two / NAMES[target], three / NAMES[start]
    two.unlink(missing_ok=True)
    write(one, episodes, start)
    given_rows = read(start, one)
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
    assert len(found) == done.n_episodes == len(given_rows) - done.n_skipped
    assert skip or not done.n_skipped
    if done.n_skipped:
        return
    wanted = [carried(rows, FORMATS[target]) for rows in given_rows]
    assert [carried(rows, FORMATS[target]) for rows in found] == wanted
    # Nothing was lost but ids.
    assert [carried(rows, FORMATS[start]) for rows in given_rows] == wanted
    # And back again.
    convert(two, three, from_format=target, to_format=start, **said)
    assert [carried(rows, FORMATS[target]) for rows in read(start, three)] == wanted


@pytest.mark.parametrize("start", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_convert_holds_plain_examples_in_all_formats(start, target, tmp_path):
    corpus = [[Message(text=f"text {n}", labels=[f"label {n}"])] for n in range(3)]
    one, two = tmp_path / f"one.{start}", tmp_path / f"two.{target}"
    one, two = (tmp_path / f"{n}-{NAMES[name]}" for n, name in enumerate((start, target)))
    write(one, corpus, start)
    done = convert(one, two, to_format=target, label_speaker="B")
    # Numbered lines without a third column are fbdialog's as well as bAbI's.
    assert done.from_format == ("fbdialog" if start == "babi" else start) and done.was_guessed
    assert (done.n_episodes, done.n_skipped) == (3, 0)
    pairs = [(rows[0]["text"], rows[0]["labels"]) for rows in read(target, two)]
    assert pairs == [(f"text {n}", [f"label {n}"]) for n in range(3)]


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
def test_convert_between_conversations_names_what_would_be_lost(tmp_path, row, words):
    path = tmp_path / "1.jsonl"
    path.write_text(json.dumps(row))
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


CASES = {
    "labels": ("text:a\tlabels:b|c", "conversations", "it has 2 labels.*--drop labels keeps"),
    "field": ("text:a\tlabels:b\ttopic:t\treward:1", "csv", "'reward'; --drop reward,topic leaves"),
    "history": ("text:a\tlabels:b\ntext:c\tlabels:d", "tsv", "it has 2 turns.*--drop history cuts"),
}


@pytest.mark.parametrize("case", CASES)
def test_convert_names_what_to_drop(tmp_path, case):
    content, target, words = CASES[case]
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text(content)
    with pytest.raises(DataError, match=f"example '0/0' does not fit into.*{words}") as caught:
        convert(one, two, to_format=target)
    drop = str(caught.value).partition("--drop ")[2].split()[0].strip(";").split(",")
    done = convert(one, two, to_format=target, drop=drop)
    assert done.n_examples == (2 if case == "history" else 1) and done.n_skipped == 0


def test_convert_takes_blanks_off_the_ends_when_told(tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("text: a \\n b\tlabels: c |d\n")
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
def test_convert_names_the_text_that_does_not_fit(tmp_path, target, text, words):
    rows = [{"text": "good", "label": "x"}, {"text": text, "label": "x"}]
    path = tmp_path / "1.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=f"1.jsonl  example '2/0' does not fit into.*{words}"):
        convert(path, tmp_path / "2", to_format=target)
    assert list(tmp_path.iterdir()) == [path]
    done = convert(path, tmp_path / "2", to_format=target, skip=True)
    assert (done.n_examples, done.n_skipped) == (1, 1) and "example '2/0'" in done.first_skipped


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


def test_convert_refuses_names_and_files_that_tell_nothing(tmp_path):
    path = tmp_path / "what.txt"
    path.write_text("just a text\n")
    with pytest.raises(DataError, match="what.txt:1  its format cannot be told, it begins 'just a"):
        convert(path, tmp_path / "x", to_format="parlai")
    with pytest.raises(DialogError, match="tells no format: give one of parlai"):
        convert(path, tmp_path / "x")
    with pytest.raises(DialogError, match="no format 'parlay'; did you mean 'parlai'"):
        convert(path, tmp_path / "x", to_format="parlay")


@pytest.mark.parametrize(
    "content, name",
    [
        ("topic:x\ttext:a\tlabels:b\n", "parlai"),
        ("1 a\n2 b\tc\t1\n3 d\te\t1 2\n", "babi"),
        ("1 a\n2 b\tc\t1\n3 d\te\t0.5\n", "fbdialog"),
        ("1 a\tb\t1\n", "fbdialog"),
        ("1 a\tb\t1\tb|c\n", "fbdialog"),
        ('{"turns": []}\n', "conversations"),
        ('{"dialog": []}\n', "parlai-conversations"),
        ('\n{"text": "a", "label": "b"}\n', "jsonl"),
    ],
)
def test_guess_format_by_content(tmp_path, content, name):
    path = tmp_path / "data.txt.gz"
    path.write_bytes(gzip.compress(content.encode()))
    assert guess_format(str(path)) == name


def pairs(episodes):
    return Counter((m["text"], tuple(m["labels"])) for episode in episodes for m in episode)


@pytest.mark.parametrize("corpus, speaker", [("sgd", "system"), ("self_dialogue", "second")])
def test_convert_real_conversations_to_parlai_and_back(data, tmp_path, corpus, speaker):
    source = str(data / corpus / "test.jsonl.gz")
    text, back = tmp_path / "data.txt", tmp_path / "data.jsonl.gz"
    done = convert(source, text, to_format="parlai", label_speaker=speaker)
    given_episodes = list(read_conversations(source, speaker))
    found = list(read_parlai_text(str(text)))
    assert done.n_examples == sum(map(len, given_episodes)) and done.n_skipped == 0
    assert pairs(found) == pairs(given_episodes)
    convert(text, back, to_format="conversations")
    again = list(read_conversations(str(back), "B"))
    assert again == given_episodes


@pytest.mark.parametrize("kind", ["babi_qa", "babi_dialog"])
def test_convert_every_babi_file_to_itself(data, tmp_path, kind):
    """Numbered lines become the same numbered lines, through ParlAI's text as well."""
    archive = {
        "babi_qa": "babi_tasks_1-20_v1-2_en.tar.gz",
        "babi_dialog": "dialog-bAbI-tasks.tar.gz",
    }
    name = "babi" if kind == "babi_qa" else "fbdialog"
    one, two, three = (tmp_path / part for part in ("1.txt", "2.txt", "3.txt"))
    n_files = 0
    with tarfile.open(data / kind / archive[kind]) as files:
        for member in files:
            wanted = "/en/qa" in member.name if kind == "babi_qa" else "-task" in member.name
            part = "test" if kind == "babi_qa" else "dev"
            if not wanted or part not in member.name or "kb" in member.name:
                continue
            one.write_bytes(files.extractfile(member).read())
            first = convert(one, two, from_format=name, to_format=name, force=True)
            supporting = name == "babi"
            episodes = list(read_numbered_text(str(one), supporting))
            assert list(read_numbered_text(str(two), supporting)) == episodes
            drop = ["supporting"]
            second = convert(
                two, three, from_format=name, to_format="parlai", drop=drop, force=True
            )
            assert first.n_examples == second.n_examples == sum(map(len, episodes))
            assert pairs(read_parlai_text(str(three))) == pairs(episodes)
            n_files += 1
    assert n_files == (20 if kind == "babi_qa" else 6)
