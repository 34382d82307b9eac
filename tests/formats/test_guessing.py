"""Formats told by the content of a file."""

import gzip

import pytest

from thincdialog.formats.guessing import guess_format


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
