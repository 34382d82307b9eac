"""Decompress gzip and zip files while they are read. For files in other formats, raise an error
that says how to unpack or convert them."""

import gzip
import io
import re
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Iterator, Union
from zipfile import BadZipFile, ZipFile, ZipInfo

from ..errors import DataError
from .wording import short

# Suffixes of data files. Other files in a folder or zip file are skipped, and so are hidden files
# and files whose names begin with one of ABOUT.
DATA_SUFFIXES = (".txt", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".yml", ".yaml", ".iob",
                 ".conll", ".parquet", ".arrow", ".feather")  # fmt: skip
HIDDEN = re.compile(r"(^|/)(\.|__MACOSX)")
ABOUT = ("readme", "license", "licence", "changelog")

# See ``most_unpacked``.
MAX_TIMES, MAX_UNPACKED = 200, 1 << 24
TOO_LARGE = f"unpacks to more than {MAX_TIMES} times its size: people do not write such text"

GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
# First bytes of files that cannot be read here: a description of the file, and advice.
OTHERS = {
    **dict.fromkeys((GZIP, ZIP), "is compressed twice: unpack it once"),
    b"BZh": "is compressed with bzip2: unpack it (bunzip2 FILE)",
    b"\xfd7zXZ": "is compressed with xz: unpack it (unxz FILE)",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd: unpack it (unzstd FILE)",
    b"PK\x05\x06": "is an empty zip file",
    b"7z\xbc\xaf": "is a 7-Zip archive: unpack it (7z x FILE)",
    b"Rar!": "is a RAR archive: unpack it (unrar x FILE)",
    b"PAR1": "is a Parquet file, not text: let its name end in .parquet, and read texts with "
    "labels with thincdialog.Dataset.v1, conversations with thincdialog.JSONLayout.v1",
    b"ARROW1": "is an Arrow file, not text: read it with thincdialog.Dataset.v1",
    b"SQLite format 3": "is an SQLite database: export its table as CSV",
    b"\xd0\xcf\x11\xe0": "is an old Excel or Word file: save it as CSV (UTF-8) or text",
    b"%PDF": "is a PDF: save its text",
    b"\x04\x22\x4d\x18": "is compressed with lz4: unpack it (unlz4 FILE)",
    **dict.fromkeys((b"\x89PNG", b"\xff\xd8\xff", b"GIF8"), "is an image, not text"),
    b"\xba\x16\x4f\x2f": "is a fastText model (.bin): give its .vec file",
    **dict.fromkeys((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), "is a Python pickle, "
                    "which could run code: save its values as text"),
}  # fmt: skip
TAR = "is a tar archive: unpack it (tar xf FILE), and give a file or folder from it"


def most_unpacked(size: int) -> int:
    """Return the maximum size in bytes of decompressed content: MAX_TIMES its compressed size, or
    MAX_UNPACKED if that is more."""
    return max(MAX_UNPACKED, MAX_TIMES * size)


def is_data(name: str) -> bool:
    """Return whether a file in a folder or zip file is a data file, by its name."""
    path = PurePosixPath(name.lower().removesuffix(".gz").removesuffix(".zip"))
    is_packed = path.name != PurePosixPath(name.lower()).name
    is_known = path.suffix in DATA_SUFFIXES or (is_packed and not path.suffix)
    return is_known and not path.name.startswith((".", *ABOUT))


@contextmanager
def unpacked(stream: Any, path: object) -> Iterator[BinaryIO]:
    """Yield the content of a file as a stream of bytes, decompressed if the file is compressed.

    stream (BufferedReader): The bytes of the file.
    path (object): The file, for error messages.
    RAISES (DataError): If the kind of file is not supported, or a zip file is in a pipe, encrypted
        or far too large, or does not have exactly one data file.
    """
    try:
        if stream.peek(4).startswith(ZIP):
            if not stream.seekable():
                raise DataError(path, "is a zip file in a pipe: give the path of the file")
            with ZipFile(stream) as archive, archive.open(_member(archive, path)) as inner:
                yield _checked(io.BufferedReader(inner, 1 << 18), path)
        elif stream.peek(2).startswith(GZIP):
            with gzip.GzipFile(fileobj=stream, mode="rb") as inner:
                yield _checked(io.BufferedReader(inner, 1 << 18), path)
        else:
            yield _checked(stream, path)
    except NotImplementedError as error:
        raise DataError(path, f"the zip file uses an unsupported feature ({error})") from None


def _checked(stream: Any, path: object) -> BinaryIO:
    head = stream.peek(512)
    for magic, what in OTHERS.items():
        if head.startswith(magic):
            raise DataError(path, what)
    if head[257:262] == b"ustar":
        raise DataError(path, TAR)
    return stream


def _member(archive: ZipFile, path: object) -> ZipInfo:
    """Return the data file in a zip file.

    RAISES (DataError): If there is not exactly one data file, or it is encrypted or too large.
    """
    members = [member for member in archive.infolist() if not member.is_dir()]
    if any(member.filename == "[Content_Types].xml" for member in members):
        raise DataError(path, "is an Excel or Word file: save it as CSV (UTF-8) or text")
    shown = [member for member in members if not HIDDEN.search(member.filename)]
    data = [member for member in shown if is_data(member.filename)] or shown
    if len(data) != 1:
        names = ", ".join(short(member.filename) for member in data[:8])
        more = f" and {len(data) - 8:,} more" if len(data) > 8 else ""
        hint = "unpack it, and give one or more of them" if data else "there is nothing to read"
        raise DataError(path, f"holds {len(data):,} files ({names}{more}): {hint}")
    member = data[0]
    if member.flag_bits & 1:
        raise DataError(path, f"{short(member.filename)} is encrypted: unpack it")
    if member.file_size > most_unpacked(member.compress_size):
        raise DataError(path, TOO_LARGE)
    return member


def name_inside(path: Union[str, Path]) -> str:
    """Return the name of the data file in a zip file; the path itself if there is none."""
    try:
        with ZipFile(path) as archive:
            return _member(archive, path).filename
    except (OSError, BadZipFile, DataError):
        return str(path)
