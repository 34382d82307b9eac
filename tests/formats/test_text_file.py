"""Every reader meets bad files with one clear error, never with another exception."""

import gzip
import json
import os

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from thincdialog.errors import DataError
from thincdialog.formats import text_file
from thincdialog.formats.candidates import read_list
from thincdialog.formats.conversations import read_conversations
from thincdialog.formats.labelled_text import read_labelled_text
from thincdialog.formats.numbered_text import read_numbered_text
from thincdialog.formats.parlai_text import read_parlai_text
from thincdialog.teachers.labelled_text import LabelledText

# Reader, suffix, head of the file, and a good line with TEXT in it.
READERS = {
    "parlai": (read_parlai_text, ".txt", "", "text:TEXT\tlabels:x\tepisode_done:True"),
    "numbered": (read_numbered_text, ".txt", "", "1 TEXT\tx"),
    "jsonl": (read_labelled_text, ".jsonl", "", '{"text": "TEXT", "label": "x"}'),
    "csv": (read_labelled_text, ".csv", "text,label\n", "TEXT,x"),
    "tsv": (read_labelled_text, ".tsv", "text\tlabel\n", "TEXT\tx"),
    "conversations": (
        read_conversations,
        ".jsonl",
        "",
        '{"turns": [{"speaker": "a", "text": "TEXT"}, {"speaker": "b", "text": "x"}]}',
    ),
}


@pytest.fixture(params=READERS)
def reader(request, tmp_path):
    """Reads bytes as a file of one format."""
    read, suffix, head, line = READERS[request.param]

    class Reader:
        path = str(tmp_path / f"data{suffix}")
        n_head = head.count("\n")

        def file(self, *texts, ends="\n"):
            lines = head.splitlines() + [line.replace("TEXT", text) for text in texts]
            return "".join(f"{part}{ends}" for part in lines)

        def __call__(self, content):
            (tmp_path / f"data{suffix}").write_bytes(content)
            return [message["text"] for episode in read(self.path) for message in episode]

        def error(self, content):
            with pytest.raises(DataError) as caught:
                self(content)
            text = str(caught.value)
            assert text.startswith(self.path) and "\n" not in text and len(text) < 400
            return text

    Reader.read = staticmethod(read)
    return Reader()


def test_readers_accept_what_windows_writes(reader):
    content = reader.file("one", "two", ends="\r\n").encode()
    assert reader(content) == reader(b"\xef\xbb\xbf" + content) == ["one", "two"]


def test_readers_accept_gzip_and_a_missing_last_line_end(reader):
    content = reader.file("один", "二").rstrip("\n").encode()
    assert reader(gzip.compress(content)) == reader(content) == ["один", "二"]
    # Two gzip files glued together are one file.
    glued = gzip.compress(content + b"\n") + gzip.compress(b"\n")
    assert reader(glued) == ["один", "二"]


def test_readers_accept_an_empty_text_and_keep_it(reader):
    texts = ["", "two"]
    assert reader(reader.file(*texts).encode()) == texts


def test_readers_accept_a_line_of_ten_megabytes(reader):
    long = "word " * (2 << 20)
    assert reader(reader.file("a", long.strip()).encode()) == ["a", long.strip()]


def test_readers_refuse_a_line_above_the_limit(reader, monkeypatch):
    monkeypatch.setattr(text_file, "MAX_LINE", 1 << 20)
    text = reader.error(reader.file("a", "b" * (1 << 21)).encode())
    assert f":{reader.n_head + 2}  the line is longer than 1 MB" in text


def test_readers_need_no_memory_for_a_bomb(reader, monkeypatch):
    monkeypatch.setattr(text_file, "MAX_LINE", 1 << 20)
    bomb = gzip.compress(b"a" * (50 << 20))
    assert len(bomb) < 100_000 and ":1  the line is longer than 1 MB" in reader.error(bomb)


def test_readers_name_the_line_and_byte_of_a_wrong_encoding(reader):
    content = reader.file("a", "caf\u00e9").encode("latin-1")
    text = reader.error(content)
    assert f":{reader.n_head + 2}  not UTF-8: byte " in text and "is 0xe9" in text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_readers_recognise_wide_encodings(reader, encoding):
    text = reader.error(reader.file("a").encode(encoding))
    assert ":1  " in text and "UTF-16" in text and "save it as UTF-8" in text


def test_readers_refuse_nul_bytes(reader):
    text = reader.error(reader.file("a", "b\0c").encode())
    assert f":{reader.n_head + 2}  NUL byte at byte " in text


def test_readers_refuse_damaged_gzip(reader):
    packed = gzip.compress(
        reader.file(*(f"text {os.urandom(9).hex()}" for _ in range(999))).encode()
    )
    assert "damaged or cut off after line" in reader.error(packed[:-500])
    assert "damaged or cut off" in reader.error(packed[: len(packed) // 2])
    assert "damaged or cut off" in reader.error(packed[:5])
    wrong_sum = packed[:-8] + bytes(byte ^ 255 for byte in packed[-8:])
    assert "damaged or cut off" in reader.error(wrong_sum)
    assert "damaged or cut off" in reader.error(packed + b"more")


def test_readers_refuse_empty_files(reader):
    assert "the file is empty" in reader.error(b"")
    assert "the file is empty" in reader.error(gzip.compress(b""))
    assert "holds no examples" in reader.error(b"\n\n")


def test_readers_refuse_what_is_no_file(reader, tmp_path):
    with pytest.raises(DataError, match="file not found"):
        list(reader.read(reader.path))
    reader(reader.file("a").encode())
    typed = reader.path.replace("data", "daat")
    with pytest.raises(DataError, match="daat.*file not found; did you mean 'data"):
        list(reader.read(typed))
    with pytest.raises(DataError, match="file not found: the folder"):
        list(reader.read(str(tmp_path / "no" / "such" / "folder" / os.path.basename(reader.path))))
    folder = tmp_path / f"folder{os.path.splitext(reader.path)[1]}"
    folder.mkdir()
    with pytest.raises(DataError, match="is a directory: give the file in it"):
        list(reader.read(str(folder)))
    for path in (typed, str(folder)):
        with pytest.raises(DataError, match="not found; did you mean|is a directory"):
            text_file.check_readable(path)
    text_file.check_readable(reader.path)


def test_teachers_miss_files_of_all_splits_before_reading_any(tmp_path):
    (tmp_path / "train.jsonl").write_text("not read yet")
    paths = {split: str(tmp_path / f"{split}.jsonl") for split in ("train", "test")}
    with pytest.raises(DataError, match="test.jsonl  file not found"):
        LabelledText(**paths).check_sources()
    LabelledText(train=paths["train"]).check_sources()


@pytest.mark.parametrize("reader", ["jsonl", "conversations"], indirect=True)
@pytest.mark.parametrize(
    "line, message",
    [
        ('{"text": "a"', "not valid JSON at column 13"),
        ("{'text': 'a'}", "not valid JSON at column 2"),
        ("hello", "not valid JSON at column 1: Expecting value; it reads 'hello'"),
        ("[1, 2]", "expected a JSON object such as {...}, found a list: '[1, 2]'"),
        ('"text"', "found a string"),
        ("null", "found null"),
        ("3", "found a number"),
        ("[" * 100_000, "not readable as JSON"),
        ('{"a": ' + "1" * 5000 + "}", None),
        ('{"text": "\\ud83d", "label": "x"}', "\\ud83d is half of a character"),
    ],
)
def test_json_readers_name_the_line_of_a_mistake(reader, line, message):
    text = reader.error(f"{reader.file('a')}{line}\n".encode())
    assert f"{reader.path}:2  " in text and (message is None or message in text)


def test_read_list_refuses_a_file_without_candidates(tmp_path):
    path = tmp_path / "candidates.txt"
    path.write_text("\n \n")
    with pytest.raises(DataError, match="holds no candidates"):
        read_list(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "turns", "dialog", "speaker", "text", "label", "x"]), inner
        )
    ),
    max_leaves=12,
)
bodies = (
    st.binary(max_size=200)
    | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.binary(max_size=200).map(gzip.compress)
    | st.lists(json_values.map(json.dumps), max_size=4).map(lambda x: "\n".join(x).encode())
    | st.lists(
        st.sampled_from(["1 ", "2 ", "\t", "\n", "|", ":", "text", "labels", "x", ",", '"', "\r"]),
        max_size=30,
    ).map(lambda parts: "".join(parts).encode())
)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bodies, st.booleans())
@example(b"\x1f\x8b", False)
@example(b"\x1f\x8b\x08\x00\x00\x00\x00\x00", False)
def test_readers_give_messages_or_a_data_error(reader, body, has_head):
    _, _, head, line = next(
        entry for entry in READERS.values()
        if entry[0] is reader.read and reader.path.endswith(entry[1])
    )  # fmt: skip
    content = head.encode() + line.encode() + b"\n" + body if has_head else body
    try:
        texts = reader(content)
    except DataError as error:
        assert str(error).startswith(reader.path)
    else:
        assert texts and all(isinstance(text, str) for text in texts)
        for text in texts:
            text.encode("utf-8")
