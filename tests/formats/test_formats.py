"""The formats by name, and how each is read."""

import pytest

from thincdialog.cli.convert import NAMES
from thincdialog.formats.formats import FORMATS

SUFFIXES = {"jsonl": ".jsonl", "csv": ".csv", "tsv": ".tsv"}
HEADERS = {"csv": ["text,label"], "tsv": ["text\tlabel"]}
NUMBERED = "1 a\tb\n2 c\td\n"
CONTENTS = {
    "parlai": "text:a\tlabels:b\ntext:c\tlabels:d\tepisode_done:True\n",
    "fbdialog": NUMBERED,
    "babi": NUMBERED,
    "conversations": '{"turns": [%s]}\n' % ", ".join(
        '{"speaker": "%s", "text": "%s"}' % pair for pair in zip("xyxy", "abcd")),
    "parlai-conversations": '{"dialog": [[%s]]}\n' % ", ".join(
        '{"id": "%s", "text": "%s"}' % pair for pair in zip("xyxy", "abcd")),
    "jsonl": '{"text": "a", "label": "b"}\n{"text": "c", "label": "d"}\n',
    "csv": "text,label\na,b\nc,d\n",
    "tsv": "text\tlabel\na\tb\nc\td\n",
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_formats_read_the_same_examples(written, name):
    path = written(CONTENTS[name], f"data{SUFFIXES.get(name, '.txt')}")
    episodes = FORMATS[name](path)
    found = [(message["text"], message["labels"]) for episode in episodes for message in episode]
    assert found == [("a", ["b"]), ("c", ["d"])]


def test_formats_are_those_of_the_command():
    assert NAMES.split(", ") == list(FORMATS) == list(CONTENTS)
