"""Every reader raises one clear error for a bad file, never another exception."""

import gzip
import os

import pytest

from tests.formats.test_formats import HEADERS, SUFFIXES
from thincdialog.errors import DataError
from thincdialog.formats import text_file
from thincdialog.formats.context import Bookmark
from thincdialog.formats.formats import FORMATS
from thincdialog.teachers.text_formats import LabelledText

TURNS = '{"turns": [{"speaker": "a", "text": "TEXT"}, {"speaker": "b", "text": "x"}]}'
# A valid line of each format. Its text is TEXT.
LINES = {
    "parlai": "text:TEXT\tlabels:x\tepisode_done:True",
    "fbdialog": "1 TEXT\tx",
    "jsonl": '{"text": "TEXT", "label": "x"}',
    "csv": "TEXT,x",
    "tsv": "TEXT\tx",
    "conversations": TURNS,
}


class Reader:
    """Read bytes as a file of one format."""

    def __init__(self, name, written, error):
        self.read = FORMATS[name]
        self.line, self.written, self.say = LINES[name], written, error
        self.head = HEADERS.get(name, [])
        self.name = f"data{SUFFIXES.get(name, '.txt')}"
        self.second = len(self.head) + 2  # Number of the line with the second text.

    def file(self, *texts, ends="\n"):
        lines = [*self.head, *(self.line.replace("TEXT", text) for text in texts)]
        return "".join(f"{part}{ends}" for part in lines)

    def __call__(self, content):
        path = self.written(content, self.name)
        return [message["text"] for episode in self.read(path) for message in episode]

    def error(self, content):
        text = self.say(self.read, content, self.name)
        assert "\n" not in text and len(text) < 400
        return text


@pytest.fixture(params=LINES)
def reader(request, written, error):
    return Reader(request.param, written, error)


def test_readers_accept_files_of_editors_and_gzip(reader):
    texts = ["один", "", ("word " * (2 << 20)).strip()]
    content = reader.file(*texts).encode()
    windows = reader.file(*texts, ends="\r\n").encode()
    # Two concatenated gzip files are one file.
    glued = gzip.compress(content) + gzip.compress(b"\n")
    for given in (content, content.rstrip(b"\n"), windows, b"\xef\xbb\xbf" + windows, glued):
        assert reader(given) == texts


def test_readers_need_no_memory_for_a_long_line_or_a_bomb(reader, monkeypatch):
    monkeypatch.setattr(text_file, "MAX_LINE", 1 << 20)
    text = reader.error(reader.file("a", "b" * (1 << 21)).encode())
    assert text.startswith(f":{reader.second}  the line is longer than 1 MB")
    bomb = gzip.compress(b"a" * (50 << 20))
    assert len(bomb) < 100_000 and ":1  the line is longer than 1 MB" in reader.error(bomb)


def test_readers_name_the_line_and_byte_that_is_not_utf8(reader):
    text = reader.error(reader.file("a", "caf\u00e9").encode("latin-1"))
    assert text.startswith(f":{reader.second}  not UTF-8: byte ") and "is 0xe9" in text
    text = reader.error(reader.file("a", "b\0c").encode())
    assert text.startswith(f":{reader.second}  NUL byte at byte ")
    for encoding in ("utf-16-le", "utf-32-le"):
        text = reader.error(reader.file("a").encode(encoding))
        assert ":1  " in text and "UTF-16" in text and "save it as UTF-8" in text
        assert 'for UTF-16 set encoding = "utf-16-le" (or -be)' in text


def test_read_lines_skips_byte_order_marks_of_concatenated_files(tmp_path):
    parts = ("\ufeffa\ufeff\r\n", "\ufeff\u4f60\n", "c\n")
    (tmp_path / "a").write_bytes("".join(parts).encode())
    (tmp_path / "b").write_bytes("".join(parts).encode("utf-16-le"))
    for name in "ab":
        lines = [line for _, line in text_file.read_lines(tmp_path / name)]
        assert lines == ["a\ufeff", "\u4f60", "c"]  # Within a line, the mark is kept.


def test_read_lines_needs_a_mark_for_utf_16_without_an_order_of_bytes(tmp_path):
    for encoding, name in (("utf-16", "utf-16"), ("u32", "utf-32")):
        (tmp_path / "a").write_bytes("a\n".encode(f"{name}-le"))
        text = f'no byte order mark, so {name} is not enough: set encoding = "{name}-le" .or -be'
        with pytest.raises(DataError, match=text):
            list(text_file.read_lines(tmp_path / "a", Bookmark(encoding=encoding)))
        (tmp_path / "a").write_bytes("a\n".encode(encoding))
        lines = list(text_file.read_lines(tmp_path / "a", Bookmark(encoding=encoding)))
        assert lines == [(1, "a")]


def test_readers_refuse_damaged_gzip(reader):
    texts = (f"text {os.urandom(9).hex()}" for _ in range(999))
    packed = gzip.compress(reader.file(*texts).encode())
    wrong_sum = packed[:-8] + bytes(byte ^ 255 for byte in packed[-8:])
    for damaged in (packed[: len(packed) // 2], packed[:5], wrong_sum, packed + b"more"):
        assert "damaged or cut off" in reader.error(damaged)


def test_read_lines_names_the_line_after_which_gzip_is_damaged(tmp_path):
    lines = [os.urandom(40).hex() for _ in range(9999)]
    (tmp_path / "a.gz").write_bytes(gzip.compress("\n".join(lines).encode())[:-500])
    read = []
    with pytest.raises(DataError, match="damaged or cut off after this line") as caught:
        read.extend(line for _, line in text_file.read_lines(tmp_path / "a.gz"))
    assert caught.value.line == len(read) and read == lines[: len(read)]


def test_readers_refuse_empty_files(reader):
    assert "the file is empty" in reader.error(b"")
    assert "the file is empty" in reader.error(gzip.compress(b""))
    assert "holds no examples" in reader.error(b"\n\n")


def test_readers_refuse_folders_devices_and_sparse_files(reader, written, tmp_path):
    good = written(reader.file("a"), reader.name)
    text_file.check_readable(good)
    folder = tmp_path / f"folder{reader.name}"
    folder.mkdir()
    link = tmp_path / f"link{reader.name}"
    link.symlink_to("gone")
    for path, words in {
        str(link): "is a link to gone, which does not exist",
        good.replace("data", "daat"): "daat.*file not found; did you mean 'data",
        str(folder): "is a directory: give a file in it",
        str(tmp_path / "no" / "such" / reader.name): "file not found: the folder",
    }.items():
        with pytest.raises(DataError, match=words):
            list(reader.read(path))
        with pytest.raises(DataError, match=words):
            text_file.check_readable(path)
    for name in ("zero", "urandom", "null"):
        device = tmp_path / f"{name}{reader.name}"
        device.symlink_to(f"/dev/{name}")
        with pytest.raises(DataError, match="is a device: give a file or a pipe"):
            list(reader.read(str(device)))


def test_teachers_report_missing_files_of_all_splits_before_reading(tmp_path):
    (tmp_path / "train.jsonl").write_text("not read yet")
    paths = {split: str(tmp_path / f"{split}.jsonl") for split in ("train", "test")}
    with pytest.raises(DataError, match="test.jsonl  file not found"):
        LabelledText(**paths).check_sources()
    LabelledText(train=paths["train"]).check_sources()
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="is a directory: give a file in it"):
        LabelledText(train=paths["train"], dev=str(tmp_path / "empty")).check_sources()


def test_is_pipe_is_true_only_for_pipes(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    names = [str(tmp_path / "pipe"), str(tmp_path / "file"), str(tmp_path), str(tmp_path / "none")]
    assert list(map(text_file.is_pipe, names)) == [True, False, False, False]


@pytest.mark.parametrize("reader", ["jsonl", "conversations"], indirect=True)
@pytest.mark.parametrize(
    "line, message",
    [
        ('{"text": "a"', "not valid JSON at column 13"),
        ("{'text': 'a'}", "not valid JSON at column 2"),
        ("hello", "not valid JSON at column 1: Expecting value; the line is 'hello'"),
        ("[1, 2]", "expected a JSON object such as {...}, found a list: '[1, 2]'"),
        ('"text"', "found a string"),
        ("null", "found null"),
        ("3", "found a number"),
        ("[" * 100_000, "not readable as JSON"),
        ('{"a": ' + "1" * 5000 + "}", ""),
        ('{"text": "\\ud83d", "label": "x"}', "\\ud83d is half of a character"),
    ],
)
def test_json_readers_name_the_line_of_a_mistake(reader, line, message):
    text = reader.error(f"{reader.file('a')}{line}\n".encode())
    assert text.startswith(":2  ") and message in text


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("is_zipped", [False, True])
def test_a_file_that_is_replaced_while_it_is_read_is_an_error(tmp_path, cut, is_zipped):
    pack = gzip.compress if is_zipped else bytes
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"

    def read():
        if cut:
            return text_file.cut_lines([str(path)], Bookmark(), lambda: 3)
        return text_file.read_lines(path)

    said = "a.txt.*(changed while it was read|compressed data is damaged)"
    path.write_bytes(pack(b"one\ntwo\n"))
    assert len(list(read())) == 2 + cut
    for change in (
        lambda: os.replace(other, path),
        lambda: path.write_bytes(pack(b"one\ntwo\nthree\n" * 9)),
    ):
        path.write_bytes(pack(b"one\ntwo\n"))
        other.write_bytes(pack(b"six\nten\n"))
        lines = read()
        next(lines)
        change()
        with pytest.raises(DataError, match=said):
            list(lines)
