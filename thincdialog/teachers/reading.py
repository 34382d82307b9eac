"""Read text files line by line, plain or gzip'd, and say exactly what is wrong."""

import difflib
import errno
import gzip
import io
import json
import os
import stat
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ..errors import DataError
from .bookmark import Bookmark
from .strictness import refuses_outside_labels

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


def read_lines(path: Union[str, Path], at: Optional[Bookmark] = None) -> Iterator[Line]:
    """Every line of a UTF-8 file without its line end, with its number from 1.

    Lines end with LF or CRLF; a byte order mark at the start is dropped. Gzip is
    known by its content, whatever the file's name.

    path (Union[str, Path]): The file.
    at (Optional[Bookmark]): Lies where to begin; is told where each line begins and ends.
    RAISES (DataError): If the file is missing, a directory, empty, unreadable,
        damaged, not UTF-8, or has a NUL byte or a line of more than MAX_LINE bytes.
    """
    at = at or Bookmark()
    byte, number = at.spot
    try:
        with _open(path) as stream:
            if byte:
                _skip(stream, byte)
            readline = stream.readline
            while raw := readline(MAX_LINE + 1):
                number += 1
                byte += len(raw)
                at.begin, at.end = at.end, (byte, number)
                yield number, _decoded(raw, path, number)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        text = f"the gzip data is damaged or cut off after line {number} ({error}): copy it anew"
        raise DataError(path, text) from None
    except OSError as error:
        raise _unreadable(path, error) from None
    if number == 0:
        raise DataError(path, "the file is empty")


def read_bytes(path: Union[str, Path], most: int = MAX_FILE) -> bytes:
    """All of a file, plain or gzip'd.

    path (Union[str, Path]): The file.
    most (int): Largest number of bytes.
    RAISES (DataError): If the file is missing, a directory, empty, unreadable, damaged
        or too large.
    """
    try:
        with _open(path) as stream:
            # Not read(most): it takes the memory for that at once.
            parts: List[bytes] = []
            n_read = 0
            while n_read <= most and (part := stream.read(1 << 20)):
                parts.append(part)
                n_read += len(part)
            content = b"".join(parts)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        text = f"the gzip data is damaged or cut off ({error}): copy it anew"
        raise DataError(path, text) from None
    except OSError as error:
        raise _unreadable(path, error) from None
    if not content:
        raise DataError(path, "the file is empty")
    if len(content) > most:
        text = f"holds more than {most >> 20:,} MB, too much to read as a whole"
        raise DataError(path, f"{text}: make it JSON lines (.jsonl), one record a line")
    return content


def read_json_lines(
    path: Union[str, Path], at: Optional[Bookmark] = None
) -> Iterator[Tuple[int, Dict[str, Any]]]:
    """Every object of a JSONL file with its line number; blank lines are skipped.

    path (Union[str, Path]): The file.
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


def read_list(path: Union[str, Path], numbered: bool = False) -> List[str]:
    """The distinct non-blank lines of a file, in their order, for instance candidates.

    path (Union[str, Path]): The file, one text a line.
    numbered (bool): As fbdialog files have it: take the leading number off each line
        if the first starts with "1 "; `\\n` stands for a line end.
    RAISES (DataError): As ``read_lines``, or if all lines are blank.
    """
    lines = [line for _, line in read_lines(path) if line and not line.isspace()]
    if numbered and lines and lines[0].startswith("1 "):
        lines = [line.partition(" ")[2] for line in lines]
    if numbered:
        lines = [line.replace("\\n", "\n") for line in lines]
    if not lines:
        raise DataError(path, "holds no candidates: expected one a line")
    return list(dict.fromkeys(lines))


def check_candidates(
    labels: Sequence[str], candidates: Sequence[str], path: object, line: Optional[int] = None
) -> None:
    """RAISES (DataError): If a label is not among the candidates of its message, and such
    ones are refused."""
    for label in labels:
        if label not in candidates and refuses_outside_labels():
            text = (
                f"the label {short(label)} is not among the {len(candidates)} label_candidates: "
                "add it there, or leave label_candidates out"
            )
            raise DataError(path, text, line)


def kind(value: Any) -> str:
    """What a JSON value is, in words."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")


def short(text: object, limit: int = 60) -> str:
    """A value for an error message: quoted, and cut in its middle if long."""
    text = str(text)
    return repr(text if len(text) <= limit else f"{text[: limit - 20]} ... {text[-15:]}")


def nearest(name: str, names: Sequence[str]) -> str:
    """``; did you mean 'x'?`` for an unknown name, or ""."""
    # Longer ones take long to compare; quoted, for a name from data may hold a line end.
    known = [other for other in names if len(other) <= 200] if len(name) <= 200 else []
    matches = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def _open(path: Union[str, Path]) -> BinaryIO:
    stream = io.BufferedReader(io.FileIO(path), 1 << 18)
    if stream.peek(2)[:2] != GZIP_MAGIC:
        return stream
    return io.BufferedReader(_OwningGzip(stream), 1 << 18)


def _skip(stream: BinaryIO, n_bytes: int) -> None:
    """Go to a byte: at once, unless the file is gzip'd (unpacked up to there) or a pipe."""
    if stream.seekable():
        stream.seek(n_bytes)
        return
    while n_bytes > 0 and (part := stream.read(min(n_bytes, 1 << 20))):
        n_bytes -= len(part)


class _OwningGzip(gzip.GzipFile):
    """A gzip reader that closes the file under it."""

    def __init__(self, stream: BinaryIO):
        super().__init__(fileobj=stream, mode="rb")
        self._stream = stream

    def close(self) -> None:
        super().close()
        self._stream.close()


def _decoded(raw: bytes, path: object, number: int) -> str:
    if len(raw) > MAX_LINE:
        text = f"the line is longer than {MAX_LINE >> 20} MB: is this a text file?"
        raise DataError(path, text, number)
    if number == 1:
        if raw.startswith(UTF16_BOMS):
            raise DataError(path, "the file is UTF-16, not UTF-8: save it as UTF-8", number)
        raw = raw.removeprefix(UTF8_BOM)
    if b"\0" in raw:
        at = raw.index(b"\0")
        text = f"NUL byte at byte {at + 1}: the file is binary, UTF-16 or damaged; save it as UTF-8"
        raise DataError(path, text, number)
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        text = (
            f"not UTF-8: byte {error.start + 1} is 0x{raw[error.start]:02x} "
            "(Latin-1 or Windows-1252?); save the file as UTF-8"
        )
        raise DataError(path, text, number) from None
    if line.endswith("\n"):
        return line[:-2] if line.endswith("\r\n") else line[:-1]
    return line.removesuffix("\r")


def check_surrogates(value: Any, path: object, line: Optional[int] = None) -> None:
    """See that a value from JSON has no half of a surrogate pair, which JSON can spell
    and no file can be written with.

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


def _unreadable(path: Union[str, Path], error: OSError) -> DataError:
    target = Path(path)
    if isinstance(error, IsADirectoryError):
        return DataError(path, "is a directory: give the file in it")
    if isinstance(error, FileNotFoundError):
        folder = target.parent
        try:
            names = [entry.name for entry in folder.iterdir()]
        except OSError:
            return DataError(path, f"file not found: the folder {folder} cannot be read")
        return DataError(path, "file not found" + nearest(target.name, names))
    return DataError(path, f"cannot be read: {error.strerror or error}")
