"""Read text files line by line, plain or gzip'd, and say exactly what is wrong."""

import errno
import gzip
import io
import json
import os
import stat
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from ..errors import DataError
from .bookmark import Bookmark
from .wording import kind, nearest, short

PathOrPaths = Union[str, List[str]]

# Number, from 1, and text without its line end.
Line = Tuple[int, str]

# Longest line in bytes. A longer one is hardly text, and would be held in memory whole.
MAX_LINE = 1 << 26

# Largest file in bytes that is read as a whole. A small gzip file can hold any number.
MAX_FILE = 1 << 31

GZIP_MAGIC = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


class Written(NamedTuple):
    """Lines that are to be written, for a reader to take in place of a file.

    name (str): The name that the file would have.
    lines (List[str]): Its lines without their ends.
    """

    name: str
    lines: List[str]

    def __str__(self) -> str:
        return self.name


File = Union[str, Path, Written]


def suffix_of(file: File) -> str:
    """What the name of a file ends in, such as ".csv": .gz behind it does not count."""
    return os.path.splitext(str(file).removesuffix(".gz"))[1].lower()


def read_lines(path: File, at: Optional[Bookmark] = None) -> Iterator[Line]:
    """Every line of a UTF-8 file without its line end, with its number from 1.

    Lines end with LF or CRLF; a byte order mark at the start is dropped. Gzip is
    known by its content, whatever the file's name.

    path (File): The file.
    at (Optional[Bookmark]): Lies where to begin; is told where each line begins and ends.
    RAISES (DataError): If the file is missing, a directory, empty, unreadable,
        damaged, not UTF-8, or has a NUL byte or a line of more than MAX_LINE bytes.
    """
    if isinstance(path, Written):
        yield from enumerate(path.lines, start=1)
        return
    at = at or Bookmark()
    at.path = path
    byte, number = at.spot
    with _opened(path, at) as stream:
        # A pipe is read up to there, what is gzip'd is unpacked.
        n_left = byte - (stream.seek(byte) if stream.seekable() else 0)
        while n_left > 0 and (part := stream.read(min(n_left, 1 << 20))):
            n_left -= len(part)
        readline = stream.readline
        while raw := readline(MAX_LINE + 1):
            number += 1
            byte += len(raw)
            at.begin, at.end = at.end, (byte, number)
            yield number, _decoded(raw, at)
    if number == 0:
        raise DataError(path, "the file is empty")


def read_bytes(path: Union[str, Path], most: int = MAX_FILE) -> bytes:
    """All of a file, plain or gzip'd.

    path (Union[str, Path]): The file.
    most (int): Largest number of bytes.
    RAISES (DataError): If it is missing, a directory, empty, unreadable, damaged or too large.
    """
    content = bytearray()
    with _opened(path) as stream:
        # Not read(most): it takes the memory for that at once.
        while len(content) <= most and (part := stream.read(1 << 20)):
            content += part
    if not content:
        raise DataError(path, "the file is empty")
    if len(content) > most:
        text = f"holds more than {most >> 20:,} MB, too much to read as a whole"
        raise DataError(path, f"{text}: make it JSON lines (.jsonl), one record a line")
    return bytes(content)


def read_json_lines(
    path: File, at: Optional[Bookmark] = None
) -> Iterator[Tuple[int, Dict[str, Any]]]:
    """Every object of a JSONL file with its line number; blank lines are skipped.

    path (File): The file.
    at (Optional[Bookmark]): Where to begin, see ``read_lines``.
    RAISES (DataError): As ``read_lines``, or if a line holds no JSON object.
    """
    for number, line in read_lines(path, at):
        if not line or line.isspace():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            text = f"not valid JSON at column {error.colno}: {error.msg}; it reads {short(line)}"
            raise DataError(path, text, number) from None
        except (ValueError, RecursionError) as error:
            raise DataError(path, f"not readable as JSON: {error}", number) from None
        if not isinstance(value, dict):
            text = f"expected a JSON object such as {{...}}, found {kind(value)}: {short(line)}"
            raise DataError(path, text, number)
        if "\\u" in line:
            check_surrogates(value, path, number)
        yield number, value


def check_surrogates(value: Any, path: object, line: Optional[int] = None) -> None:
    """See that a value from JSON has no half of a surrogate pair, which no file can hold.

    RAISES (DataError): If it has one.
    """
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        text = f"{half} is half of a character (a lone surrogate): correct or remove it"
        raise DataError(path, text, line) from None


def check_readable(path: Union[str, Path]) -> None:
    """See that a file is there, without opening it: it may be a pipe.

    RAISES (DataError): If it is missing, a directory, or must not be read.
    """
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _unreadable(path, error) from None


@contextmanager
def _opened(path: Union[str, Path], at: Optional[Bookmark] = None) -> Iterator[BinaryIO]:
    """A file's content, unpacked; whatever goes wrong with it is a ``DataError``."""
    try:
        with io.BufferedReader(io.FileIO(path), 1 << 18) as packed:
            if packed.peek(2)[:2] != GZIP_MAGIC:
                yield packed
            else:
                with gzip.GzipFile(fileobj=packed, mode="rb") as inner:
                    yield io.BufferedReader(inner, 1 << 18)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        where = f" after line {at.end[1]}" if at else ""
        text = f"the gzip data is damaged or cut off{where} ({error}): copy it anew"
        raise DataError(path, text) from None
    except OSError as error:
        raise _unreadable(path, error) from None


def _decoded(raw: bytes, at: Bookmark) -> str:
    if len(raw) > MAX_LINE:
        raise at.error(f"the line is longer than {MAX_LINE >> 20} MB: is this a text file?")
    if at.end[1] == 1:
        if raw.startswith(UTF16_BOMS):
            raise at.error("the file is UTF-16, not UTF-8: save it as UTF-8")
        raw = raw.removeprefix(UTF8_BOM)
    if b"\0" in raw:
        text = f"NUL byte at byte {raw.index(0) + 1}: the file is binary, UTF-16 or damaged"
        raise at.error(f"{text}; save it as UTF-8")
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        text = f"not UTF-8: byte {error.start + 1} is 0x{raw[error.start]:02x}"
        raise at.error(f"{text} (Latin-1 or Windows-1252?); save the file as UTF-8") from None
    if line.endswith("\n"):
        return line[:-2] if line.endswith("\r\n") else line[:-1]
    return line.removesuffix("\r")


def _unreadable(path: Union[str, Path], error: OSError) -> DataError:
    if isinstance(error, IsADirectoryError):
        return DataError(path, "is a directory: give the file in it")
    if isinstance(error, FileNotFoundError):
        folder, name = Path(path).parent, Path(path).name
        try:
            return DataError(path, "file not found" + nearest(name, os.listdir(folder)))
        except OSError:
            return DataError(path, f"file not found: the folder {folder} cannot be read")
    return DataError(path, f"cannot be read: {error.strerror or error}")
