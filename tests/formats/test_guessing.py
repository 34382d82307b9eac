"""The format of a file is guessed from its content."""

import gzip
import json

import pytest

from tests.formats.test_json_layout import SAMPLES, TEXTS
from thincdialog.errors import DataError
from thincdialog.files.json_text import parse_json
from thincdialog.formats import value_file
from thincdialog.formats.guessing import guess_format, readable_format


@pytest.mark.parametrize(
    "content, name",
    [
        ("topic:x\ttext:a\tlabels:b\n", "parlai"), ("1 a\n2 b\tc\t1\n3 d\te\t1 2\n", "babi"),
        ("1 a\n2 b\tc\t1\n3 d\te\t0.5\n", "fbdialog"), ("1 a\tb\t1\n", "fbdialog"),
        ("1 a\tb\t1\tb|c\n", "fbdialog"), ('{"turns": []}\n', "conversations"),
        ('{"dialog": []}\n', "parlai-conversations"), ('\n{"text": "a", "label": "b"}\n', "jsonl"),
    ],
)  # fmt: skip
def test_guess_format_by_content(tmp_path, content, name):
    path = tmp_path / "data.txt.gz"
    path.write_bytes(gzip.compress(content.encode()))
    assert guess_format(str(path)) == name


@pytest.mark.parametrize("name", [*SAMPLES, *TEXTS])
def test_layouts_are_guessed_by_content(tmp_path, name):
    """Each layout is guessed from its sample."""
    suffix, text = TEXTS[name][:2] if name in TEXTS else (".json", json.dumps(SAMPLES[name][0]))
    path = tmp_path / f"a{suffix}"
    path.write_text(text)
    assert readable_format(str(path)) == name
    assert guess_format(str(path)) == name


@pytest.mark.parametrize("text", [
    "", "Once upon a time\nthere was a goose: it sang.\n\nThe end\n", "a\tb\nc\td\n", "[1]",
    "Note: x\nsome prose\nand more\nof it\n", "a\tb\tc\nd\te\tf\n", "a b\nc\n",
])  # fmt: skip
@pytest.mark.parametrize("suffix", [".txt", ".json", ".yml", ".csv", ".tsv"])
def test_unknown_formats_are_not_guessed(tmp_path, text, suffix):
    text = (
        "a: b\nc: [d]\n" if suffix == ".yml" else text
    )  # In a .txt, these would be lines of speakers.
    path = tmp_path / f"a{suffix}"
    path.write_text(text)
    assert readable_format(str(path)) is None


@pytest.mark.parametrize("text, words", [
    ("L1 +++$+++ u0 +++$+++ m0 +++$+++ BO +++$+++ hi\n", "looks like Cornell's raw movie lines"),
    ('{"a": [1],\n "b": {}}',
     r"looks like one JSON value, not JSON lines \(an object with 'a', 'b'\): write a layout"),
    ('[{"a": [1], "b": {}}]',
     r"not JSON lines \(a list that begins with an object with 'a', 'b'\): write a layout"),
    ('{\n"a": 1\n}\n{\n"a": 2\n}\n', "looks like JSON values that span several lines: write"),
    ("[3]", r"looks like one JSON value, not JSON lines \(a list that begins with a number\)"),
    ("__class__b a\n",
     "looks like fastText with another prefix: replace the prefix with __label__"),
    ('{"data": [{"paragraphs": [{"qas": []}]}]}', "looks like SQuAD, whose .* prompt-completion"),
    ('{"a": 1}\n{"a": 2}\n',
     "its format cannot be guessed from its beginning, '{.*': name the .* see docs"),
])  # fmt: skip
def test_errors_about_unknown_formats_suggest_a_way(tmp_path, text, words):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        guess_format(str(path))


def test_error_about_yaml_without_a_layout_names_its_keys(tmp_path):
    path = tmp_path / "domain.yml"
    path.write_text("stories: []\nslots: {}\n")
    with pytest.raises(
        DataError, match=r"looks like YAML \(an object with 'stories', 'slots'\): write a layout"
    ):
        guess_format(str(path))


def test_a_value_is_read_once_for_all_layouts(tmp_path, monkeypatch):
    """Parsing a large file takes longer than trying all layouts."""
    path, parsed = tmp_path / "a.json", []
    path.write_text(json.dumps([{"foo": 1, "bar": 2}]))

    def counting(content):
        parsed.append(content)
        return parse_json(content)

    monkeypatch.setattr(value_file, "parse_json", counting)
    assert readable_format(str(path)) is None
    assert len(parsed) == 1


@pytest.mark.parametrize("fields", ["text:hi    labels:yo", "text:hi\tlabel:yo"])
def test_fields_of_parlai_with_a_mistake_are_no_speakers(tmp_path, fields):
    path = tmp_path / "a.txt"
    path.write_text(f"{fields}\n{fields}\tepisode_done:True\n")
    assert readable_format(str(path)) == "parlai"


@pytest.mark.parametrize("suffix, delimiter", [("csv", ","), ("tsv", "\t")])
def test_table_with_a_bad_byte_is_still_a_table(tmp_path, suffix, delimiter):
    path = tmp_path / f"a.{suffix}"
    rows = [f"hi {number}{delimiter}yes\n".encode() for number in range(60)]
    path.write_bytes(f"text{delimiter}label\n".encode() + b"".join(rows) + b"caf\xe9,no\n")
    assert readable_format(str(path)) == suffix
