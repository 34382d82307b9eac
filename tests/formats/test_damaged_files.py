"""Any data file, however damaged, gives valid messages, or one error that names the file."""

import gzip
import json
import random
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.formats.test_formats import SUFFIXES
from tests.formats.test_json_layout import SAMPLES, TEXTS
from tests.fuzzing import SEED, TIMES, mangle, within_time
from tests.processes import little_memory, slow
from thincdialog.errors import DataError, DialogError
from thincdialog.formats.candidates import read_candidates
from thincdialog.formats.context import Bookmark
from thincdialog.formats.convert import WRITERS, convert
from thincdialog.formats.formats import FORMATS
from thincdialog.formats.guessing import guess_format
from thincdialog.formats.json_layout import read_layout_file
from thincdialog.formats.layout_file import CorpusLayout, find_layout, read_layout, shipped_layouts
from thincdialog.formats.records import read_records

TURNS = [{"speaker": "a", "text": "hi \ud83d\ude00"}, {"speaker": "b", "text": "hello", "mood": 3}]
DIALOG = [[{"id": "a", "text": "hi"}, {"id": "b", "text": "hello"}]]
TALK = {"id": "one", "turns": TURNS, "topic": ["x"]}
ROWS = [{"text": "hi", "label": "greet", "id": 7}, {"text": "bye", "label": ["a", "b"]}]
PARLAI = (
    b"text:hi\tlabels:a|b\tlabel_candidates:a|b|c\tid:x\treward:1.5\n"
    b"text:bye\\nnow\tlabels:c\tepisode_done:True\n\ntext:x\tlabels:y\tmood:z\n"
)
NUMBERED = b"1 A is here.\n2 Where is A?\there\t1\n1 hi\thello\t0.5\thello|bye\n2 x\ty\n"
LAYOUT = b"about: mine\nturns: log.turns\nspeaker: who\ntext: [a, b]\nreplace: {x: y}\n"


def lines(*values):
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def layout_reader(name):
    return lambda path: read_layout_file(path, find_layout(name))


def gives(expected, read):
    """Wrap a reader that does not read messages: its result must have the expected type."""

    def found(path):
        assert isinstance(read(Path(path)), expected)
        return []

    return found


read_talk = FORMATS["conversations"]
# Each reader, with the suffix and the bytes of a good file.
READERS = {
    "both sides": (partial(read_talk, label_speaker="both"), ".jsonl", lines(TALK)),
    "named side": (partial(read_talk, label_speaker="b"), ".jsonl", lines(TALK)),
    "a layout": (gives(CorpusLayout, read_layout), ".yml", LAYOUT),
    "JSON layout": (gives(CorpusLayout, read_layout), ".json", b'{"turns": "a", "text": ["b"]}'),
    "candidates": (gives(list, read_candidates), ".txt", b"1 hello\n2 bye\n"),
    "format": (gives(str, guess_format), ".txt", NUMBERED),
}
GOOD = {
    "parlai": PARLAI,
    "babi": NUMBERED[:34],
    "fbdialog": NUMBERED[34:],
    "conversations": lines(TALK, {**TALK, "id": "two"}),
    "parlai-conversations": lines({"dialog": DIALOG}),
    "jsonl": lines(*ROWS),
    "csv": b'text,label\n"hi, you",greet\nbye,"a ""b"""\n',
    "tsv": b"text\tlabel\nhi\tgreet\nbye\tleave\n",
}
for name, reader in FORMATS.items():
    READERS[name] = (reader, SUFFIXES.get(name, ".txt"), GOOD[name])
for layout, (corpus, _) in SAMPLES.items():
    READERS[f"{layout} whole"] = (layout_reader(layout), ".json", json.dumps(corpus).encode())
    if isinstance(corpus, list):
        READERS[layout] = (layout_reader(layout), ".jsonl", lines(*corpus))
for layout, (suffix, text, _) in TEXTS.items():
    READERS[layout] = (layout_reader(layout), suffix, text.encode())


def read(name, path, content):
    """Read bytes as a file. Check that all messages are complete, or that there is one error that
    names the file. Return whether the file could be read."""
    path.write_bytes(content)
    try:
        found = [message for episode in READERS[name][0](str(path)) for message in episode]
    except DataError as error:
        text = str(error)
        assert text.startswith(str(path)) and "\n" not in text and len(text) < 2000, text
        return False
    for message in found:
        assert isinstance(message["text"], str) and message["labels"]
        "".join([message["text"], *message["labels"]]).encode("utf-8")
    return True


@pytest.mark.parametrize("name", READERS)
def test_good_files_are_read(name, tmp_path):
    _, suffix, content = READERS[name]
    assert read(name, tmp_path / f"good{suffix}", content)


def convert_any(path, content, chance):
    """Convert bytes as a file. Check that the target is written completely, or not at all with an
    error that names the file."""
    path.write_bytes(content)
    to_format = chance.choice(list(WRITERS))
    target = path.with_name("target.txt")
    drop = chance.sample(["history", "labels", "id", "mood", "topic"], chance.choice([0, 5]))
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


def test_fields_next_to_the_turns_may_be_anything(tmp_path):
    source = tmp_path / "talk.jsonl"
    source.write_bytes(lines({**TALK, "dialog": 5}, {**TALK, "id": "b", "dialog": [[3]]}))
    done = convert(source, tmp_path / "talk.txt", to_format="parlai", from_format="conversations")
    assert done.n_episodes == 2 and done.left_out["the field 'topic' of conversations"] == 2


def read_and_convert(folder, seed, n_files):
    """Read and convert files that are damaged as people, disks and editors do it."""
    chance = random.Random(seed)
    for number in range(n_files):
        name = chance.choice(list(READERS))
        _, suffix, content = READERS[name]
        content = mangle(content, chance) if chance.random() < 0.95 else content
        path = Path(folder) / f"source{suffix}"
        try:
            within_time(lambda: read(name, path, content))  # noqa: B023
            within_time(lambda: convert_any(path, content, chance))  # noqa: B023
        except BaseException:
            sys.stderr.write(f"{number} {name} {content[:3000]!r}\n")
            raise
        path.unlink()


def test_damaged_files_give_messages_or_an_error(tmp_path):
    read_and_convert(tmp_path, 0, 200)


MANY = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from tests.formats.test_damaged_files import read_and_convert
from thincdialog.files import whole_file
whole_file.sync = lambda path: None  # Nothing here has to survive a power failure.
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
read_and_convert(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits its memory as Linux does")
def test_many_damaged_files_in_little_memory(root, tmp_path):
    arguments = [str(root), str(tmp_path), str(SEED), str(1500 * TIMES)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MANY, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-5000:]


@pytest.mark.skipif(sys.platform != "linux", reason="limits its memory as Linux does")
@pytest.mark.parametrize("form", [slow("[],"), slow("{},"), slow('"\u0101",'), slow("1.5,")])
def test_json_that_expands_to_too_much_is_refused(tmp_path, form):
    """A few kilobytes would fill gigabytes of memory."""
    path = tmp_path / "bomb.json"
    part = form.encode() * (1 << 16)
    with gzip.open(path, "wb", 9) as file:
        file.write(b"[")
        for _ in range(200_000_000 // len(part)):
            file.write(part)
        file.write(b"0]")
    assert path.stat().st_size < 700_000
    with little_memory(), pytest.raises(DataError, match="unpacks to more than 200 times its size"):
        list(read_records(str(path), CorpusLayout(), Bookmark()))
