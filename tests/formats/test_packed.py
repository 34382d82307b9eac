"""Files that are compressed, or are not text at all."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest

from tests.fuzzing import within_time
from thincdialog.errors import DataError
from thincdialog.formats.packed import MAX_UNPACKED, is_data
from thincdialog.formats.text_file import read_lines, read_text, suffix_of
from thincdialog.teachers.json_layout import JSONLayout
from thincdialog.teachers.text_formats import Conversations, LabelledText

TABLE = "text,label\nhi,greet\nbye,leave\n"


def zipped(path, method=zipfile.ZIP_DEFLATED, **files):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return str(path)


def texts(teacher):
    return [message["text"] for message in teacher.for_split("train").examples()]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_zip_files_with_one_file_of_data_are_read(tmp_path, streaming, method):
    others = {
        "a/README.txt": "x",
        "__MACOSX/a/._train.csv": "x",
        "a/.hidden.csv": "",
        "a/p.jpg": "",
    }
    path = zipped(tmp_path / "a.zip", method, **others, **{"a/train.csv": TABLE})
    assert suffix_of(path) == suffix_of("A.CSV.GZ") == ".csv"
    assert texts(LabelledText(train=path, streaming=streaming)) == ["hi", "bye"]
    misnamed = zipped(tmp_path / "b.csv", method, **{"x.csv": TABLE})
    assert texts(LabelledText(train=misnamed)) == ["hi", "bye"]
    lines = zipped(tmp_path / "c.zip", method, **{"talk": "A: hi\nB: ho\n"})
    assert texts(JSONLayout("speaker-lines", train=lines, label_speaker="B")) == ["hi"]


def test_zip_files_with_several_files_name_them(tmp_path):
    path = zipped(tmp_path / "a.zip", **{"b/train.csv": TABLE, "b/test.csv": TABLE})
    with pytest.raises(DataError) as caught:
        texts(LabelledText(train=path))
    says = "holds 2 files ('b/train.csv', 'b/test.csv'): unpack it, and give one or more of them"
    assert str(caught.value) == f"{path}  {says}"
    with pytest.raises(DataError, match="holds 30 files .* and 22 more"):
        read_text(zipped(tmp_path / "b.zip", **{f"{n}.csv": "x" for n in range(30)}))
    with pytest.raises(DataError, match="holds 0 files"):
        read_text(zipped(tmp_path / "c.zip", **{"d/": ""}))
    with pytest.raises(DataError, match="d.zip  is an empty zip file$"):
        list(read_lines(zipped(tmp_path / "d.zip")))


def test_unreadable_zip_files_are_errors_of_one_line(tmp_path):
    path = tmp_path / "a.zip"
    zipped(path, **{"train.csv": TABLE * 2000})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="compressed data is damaged or cut off.*not a zip file"):
        list(read_lines(str(path)))
    for place in range(40, len(whole) // 2, 7):
        path.write_bytes(whole[:place] + b"\x55" * 5 + whole[place + 5 :])
        with pytest.raises(DataError, match="compressed data is damaged"):
            list(read_lines(str(path)))
    # Set bit 0 of the flags, here and in the directory at the end.
    encrypted = bytearray(whole)
    encrypted[6] |= 1
    encrypted[encrypted.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(encrypted)
    with pytest.raises(DataError, match="'train.csv' is encrypted: unpack it$"):
        list(read_lines(str(path)))


def test_zip_files_that_expand_to_too_much_are_refused(tmp_path):
    line = 63 * "x" + "\n"
    path = zipped(tmp_path / "a.zip", **{"train.csv": line * (MAX_UNPACKED // 64 + 1)})
    for read in (read_lines, read_text):
        with pytest.raises(DataError, match="unpacks to more than 200 times its size"):
            within_time(lambda read=read: list(read(path)))
    path = zipped(tmp_path / "b.zip", **{"train.csv": line * (MAX_UNPACKED // 128)})
    assert sum(1 for _ in read_lines(path)) == MAX_UNPACKED // 128


def tarred():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("train.csv")
        member.size = len(TABLE)
        archive.addfile(member, io.BytesIO(TABLE.encode()))
    return file.getvalue()


@pytest.mark.parametrize("content, words", [
    (bz2.compress(b"x"), "is compressed with bzip2: unpack it .bunzip2 FILE.$"),
    (lzma.compress(b"x"), "is compressed with xz: unpack it .unxz FILE.$"),
    (b"\x28\xb5\x2f\xfd\x04\x00", "is compressed with zstd"), (tarred(), "is a tar archive"),
    (gzip.compress(tarred()), "is a tar archive"), (b"PAR1\x15\x04", "is a Parquet file, not text"),
    (b"\x80\x04\x95.", "is a Python pickle"), (b"%PDF-1.4\n", "is a PDF"),
    (b"\x89PNG\r\n\x1a\n", "is an image, not text"),
], ids=["bz2", "xz", "zst", "tar", "tar.gz", "parquet", "pickle", "pdf", "png"])  # fmt: skip
@pytest.mark.parametrize("name", ["a.csv", "a.csv.packed", "a.jsonl"])
def test_other_files_are_named_by_their_content(written, content, words, name):
    path = written(content, name)
    for build in (LabelledText, Conversations):
        with pytest.raises(DataError, match=words):
            texts(build(train=path))


def test_files_of_office_programs_are_named(tmp_path):
    path = zipped(tmp_path / "a.xlsx", **{"[Content_Types].xml": "x", "xl/a.xml": "y"})
    with pytest.raises(DataError, match="is an Excel or Word file: save it as CSV"):
        read_text(path)


@pytest.mark.parametrize("name, expected", [
    ("a.csv", True), ("A.JSONL.GZ", True), ("a.zip", True), ("b/a.gz", True), ("a.csv.zip", True),
    ("README.txt", False), ("a.md", False), (".a.csv", False), ("LICENSE", False), ("a", False),
    ("a.tar.gz", False),
])  # fmt: skip
def test_files_of_data_are_known_by_their_names(name, expected):
    assert is_data(name) == expected
