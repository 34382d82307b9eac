"""Whatever stands in a data file: its messages, or one error that names the file."""

import gzip
import json
import os
import random
import subprocess
import sys
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzzing import mangle, within_time
from thincdialog.errors import DataError, DialogError
from thincdialog.formats.candidates import read_list
from thincdialog.formats.conversations import read_conversations
from thincdialog.formats.convert import convert
from thincdialog.formats.formats import FORMATS
from thincdialog.formats.guessing import guess_format
from thincdialog.formats.json_layout import read_layout_file
from thincdialog.formats.labelled_text import read_labelled_text
from thincdialog.formats.layout_file import CorpusLayout, find_layout, read_layout, shipped_layouts
from thincdialog.formats.numbered_text import read_numbered_text
from thincdialog.formats.parlai_text import read_parlai_text

TURNS = [{"speaker": "a", "text": "hi \ud83d\ude00"}, {"speaker": "b", "text": "hello", "mood": 3}]
DIALOG = [[{"id": "a", "text": "hi"}, {"id": "b", "text": "hello"}]]
TALK = {"id": "one", "turns": TURNS, "topic": ["x"]}
ROWS = [{"text": "hi", "label": "greet", "id": 7}, {"text": "bye", "label": ["a", "b"]}]


def lines(*values):
    return "".join(json.dumps(value) + "\n" for value in values).encode()


PARLAI = (
    b"text:hi\tlabels:a|b\tlabel_candidates:a|b|c\tid:x\treward:1.5\n"
    b"text:bye\\nnow\tlabels:c\tepisode_done:True\n\ntext:x\tlabels:y\tmood:z\n"
)
NUMBERED = b"1 A is here.\n2 Where is A?\there\t1\n1 hi\thello\t0.5\thello|bye\n2 x\ty\n"
TABLE = b'text,label\n"hi, you",greet\nbye,"a ""b"""\n'
PROMPTS = lines({"prompt": "hi", "completion": "hello"}, {"prompt": "x", "completion": "y"})
MESSAGES = json.dumps(
    [{"messages": [{"role": r, "content": r} for r in ("system", "user", "assistant")]}]
).encode()
GROUPS = lines(
    {"conversation_id": "1", "id": "a", "speaker": "u", "text": "hi", "reply-to": None},
    {"conversation_id": "1", "id": "b", "speaker": "v", "text": "ho", "reply-to": "a"},
)
LAYOUT = b"about: mine\nturns: log.turns\nspeaker: who\ntext: [a, b]\nreplace: {x: y}\n"


def read_by(layout, path):
    return read_layout_file(path, find_layout(layout))


def read_own_layout(path):
    """A file as a layout, then another that it describes."""
    layout = read_layout(path)
    assert isinstance(layout, CorpusLayout)
    return []


def read_candidates(path):
    assert read_list(str(path), numbered=True)
    return []


def guess(path):
    assert guess_format(str(path)) in FORMATS
    return []


# What reads a file, its suffix, and a good file.
READERS = {
    "parlai": (read_parlai_text, ".txt", PARLAI),
    "babi": (read_numbered_text, ".txt", NUMBERED[:34]),
    "fbdialog": (partial(read_numbered_text, supporting=False), ".txt", NUMBERED[34:]),
    "conversations": (read_conversations, ".jsonl", lines(TALK, {**TALK, "id": "two"})),
    "both sides": (partial(read_conversations, label_speaker="both"), ".jsonl", lines(TALK)),
    "named side": (partial(read_conversations, label_speaker="b"), ".jsonl", lines(TALK)),
    "parlai-conversations": (read_conversations, ".jsonl", lines({"dialog": DIALOG})),
    "jsonl": (read_labelled_text, ".jsonl", lines(*ROWS)),
    "csv": (partial(read_labelled_text, keep_fields=True), ".csv", TABLE),
    "tsv": (read_labelled_text, ".tsv", b"text\tlabel\nhi\tgreet\nbye\tleave\n"),
    "prompts": (partial(read_by, "prompt-completion"), ".jsonl", PROMPTS),
    "messages": (partial(read_by, "messages"), ".json", MESSAGES),
    "groups": (partial(read_by, "convokit"), ".jsonl", GROUPS),
    "layout": (read_own_layout, ".yml", LAYOUT),
    "layout in JSON": (read_own_layout, ".json", b'{"turns": "a", "text": ["b"], "speaker": "c"}'),
    "candidates": (read_candidates, ".txt", b"1 hello\n2 bye\n"),
    "format": (guess, ".txt", NUMBERED),
}


def read(name, path, content):
    """A reader's messages are whole; anything else is one error that names the file."""
    reader = READERS[name][0]
    path.write_bytes(content)
    try:
        messages = [
            m for episode in reader(path if "layout" in name else str(path)) for m in episode
        ]
    except DataError as error:
        text = str(error)
        assert text.startswith(str(path)) and "\n" not in text and len(text) < 2000, text
    else:
        for message in messages:
            assert isinstance(message["text"], str) and message["labels"]
            "".join([message["text"], *message["labels"]]).encode("utf-8")


# Of each good file the episodes: id, text and labels of each turn.
GOOD = {
    "parlai": [
        [("0/0", "hi", ["a", "b"]), ("0/1", "bye\nnow", ["c"])],
        [("1/0", "x", ["y"])],
    ],
    "babi": [[("0/0", "A is here.\nWhere is A?", ["here"])]],
    "fbdialog": [[("0/0", "hi", ["hello"]), ("0/1", "x", ["y"])]],
    "conversations": [[(f"{name}/0", "hi \U0001f600", ["hello"])] for name in ("one", "two")],
    "both sides": [
        [("one#first/0", "__SILENCE__", ["hi \U0001f600"])],
        [("one#second/0", "hi \U0001f600", ["hello"])],
    ],
    "named side": [[("one/0", "hi \U0001f600", ["hello"])]],
    "parlai-conversations": [[("1/0", "hi", ["hello"])]],
    "jsonl": [[("1/0", "hi", ["greet"])], [("2/0", "bye", ["a", "b"])]],
    "csv": [[("2/0", "hi, you", ["greet"])], [("3/0", "bye", ['a "b"'])]],
    "tsv": [[("2/0", "hi", ["greet"])], [("3/0", "bye", ["leave"])]],
    "prompts": [[("0/0", "hi", ["hello"])], [("1/0", "x", ["y"])]],
    "messages": [[("0/0", "system\nuser", ["assistant"])]],
    "groups": [[("1#first/0", "__SILENCE__", ["hi"])], [("1#second/0", "hi", ["ho"])]],
}


@pytest.mark.parametrize("name", GOOD)
def test_good_files_are_read(name, tmp_path):
    reader, suffix, content = READERS[name]
    path = tmp_path / f"good{suffix}"
    path.write_bytes(content)
    found = [
        [(message["id"], message["text"], message["labels"]) for message in episode]
        for episode in reader(str(path))
    ]
    assert found == GOOD[name]


def test_good_files_that_hold_no_messages_are_read(tmp_path):
    paths = {name: tmp_path / f"{name}{READERS[name][1]}" for name in READERS if name not in GOOD}
    for name, path in paths.items():
        path.write_bytes(READERS[name][2])
    layout = read_layout(paths.pop("layout"))
    assert (layout.about, layout.turns, layout.speaker) == ("mine", "log.turns", "who")
    assert (layout.text, layout.replace) == (["a", "b"], {"x": "y"})
    layout = read_layout(paths.pop("layout in JSON"))
    assert (layout.turns, layout.text, layout.speaker) == ("a", ["b"], "c")
    assert read_list(str(paths.pop("candidates")), numbered=True) == ["hello", "bye"]
    assert guess_format(str(paths.pop("format"))) == "fbdialog"
    assert paths == {}


@settings(max_examples=60)
@given(
    chance=st.one_of(st.randoms(use_true_random=False), st.integers(0).map(random.Random)),
)
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_give_messages_or_an_error(tmp_path_factory, name, chance):
    _, suffix, content = READERS[name]
    path = tmp_path_factory.getbasetemp() / f"damaged{suffix}"
    within_time(lambda: read(name, path, mangle(content, chance)))


def convert_any(path, content, chance):
    """A file is written whole or not at all; the error says why."""
    path.write_bytes(content)
    to_format = chance.choice(list(FORMATS))
    target = path.with_name(f"target.{'csv' if to_format == 'csv' else 'txt'}")
    drop = chance.sample(
        ["history", "labels", "blanks", "id", "mood", "topic"], chance.choice([0, 6])
    )
    known = [None, None, *FORMATS, *shipped_layouts()]
    target.unlink(missing_ok=True)
    try:
        done = convert(
            path, target, from_format=chance.choice(known), to_format=to_format,
            drop=drop, skip=chance.random() < 0.5,
        )  # fmt: skip
    except DialogError as error:
        assert str(error).startswith(str(path)), str(error)
        assert "\n" not in str(error) and len(str(error)) < 2000
        assert not target.exists() and len(list(path.parent.iterdir())) == 1
    else:
        assert done.n_episodes and target.read_bytes()
        target.unlink()


@settings(max_examples=250)
@given(
    st.sampled_from(list(READERS)),
    st.one_of(st.randoms(use_true_random=False), st.integers(0).map(random.Random)),
    st.booleans(),
)
def test_damaged_files_are_converted_or_give_an_error(tmp_path_factory, name, chance, is_good):
    _, suffix, content = READERS[name]
    folder = tmp_path_factory.getbasetemp() / "converted"
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    content = content if is_good else mangle(content, chance)
    within_time(lambda: convert_any(folder / f"source{suffix}", content, chance))


def test_layouts_that_say_a_text_of_terabytes_are_refused(tmp_path):
    path = tmp_path / "bomb.yml"
    levels = ", ".join(f"&a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60))
    path.write_text(f"about: [&a0 [x, x], {levels}]\nturns: x\n")
    with pytest.raises(DataError, match="'about' is a list: expected a text"):
        within_time(lambda: read_layout(path))
    path.write_bytes(gzip.compress(b"# long\n" * (1 << 20)))
    with pytest.raises(DataError, match="holds more than 1 MB, too much to read"):
        read_layout(path)


def test_what_is_beside_the_turns_may_be_anything(tmp_path):
    source = tmp_path / "talk.jsonl"
    source.write_bytes(lines({**TALK, "dialog": 5}, {**TALK, "id": "b", "dialog": [[3]]}))
    done = convert(source, tmp_path / "talk.txt", to_format="parlai", from_format="conversations")
    assert done.n_episodes == 2 and done.left_out["the field 'topic' of conversations"] == 2


def test_a_line_without_a_number_among_numbered_ones_has_an_error(tmp_path):
    source = tmp_path / "qa.txt"
    source.write_text("1 A is here.\n: Where is A?\there\t1\n")
    with pytest.raises(DataError, match="qa.txt:2  expected a number, a blank and a text"):
        convert(source, tmp_path / "qa.csv")


MANY = """
import random, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.teachers.test_damaged_data import READERS, convert_any, mangle, read, within_time
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
chance = random.Random(int(sys.argv[3]))
for number in range(int(sys.argv[4])):
    name = chance.choice(list(READERS))
    _, suffix, content = READERS[name]
    content = mangle(content, chance)
    path = Path(sys.argv[2]) / f"source{suffix}"
    try:
        within_time(lambda: read(name, path, content))
        within_time(lambda: convert_any(path, content, chance))
    except BaseException as error:
        print(number, name, content[:3000], file=sys.stderr)
        raise
    path.unlink()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits its memory as Linux does")
def test_many_damaged_files_in_little_memory(root, tmp_path):
    seed = os.environ.get("FUZZ_SEED", "0")
    arguments = [str(root), str(tmp_path), seed, "20000"]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MANY, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-5000:]
