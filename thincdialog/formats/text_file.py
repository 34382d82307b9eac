"""Read text files line by line, plain or compressed, with errors that name the line."""

import codecs
import errno
import gzip
import io
import json
import os
import re
import stat
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union
from zipfile import BadZipFile

from ..errors import DataError
from ..files.json_text import parse_json
from .context import Bookmark
from .packed import DATA_SUFFIXES, TOO_LARGE, is_data, most_unpacked, name_inside, unpacked
from .wording import kind, nearest, short

PathOrPaths = Union[str, List[str]]

# Number of a line, from 1, and its text without the line end.
Line = Tuple[int, str]

# Longest line in characters. A longer line is probably not text, and may not fit into memory.
MAX_LINE = 1 << 26

# Largest content in characters that is read as a whole.
MAX_FILE = 1 << 31

LONE_CR = "a line ends with CR alone: save the file with LF or CRLF, or put the text in quotes"

# Byte order marks and their encodings. UTF-32 is before UTF-16, whose mark begins UTF-32's, too.
BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

# The path that means standard input.
STDIN = "-"

# Matches a byte that could not be decoded. Such bytes become halves of surrogate pairs, which no
# decoded text has, so ``read_lines`` finds them in a line.
UNREADABLE = re.compile("[\udc00-\udcff]")


def _escape_bytes(error: UnicodeError) -> Tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    bad = error.object[error.start : error.end]
    return "".join(chr(0xDC00 | byte) for byte in bad), error.end


codecs.register_error("thincdialog.unreadable", _escape_bytes)


File = Union[str, Path]


class LostLine(str):
    """Hold a line that cannot be read completely; unreadable parts are replaced.

    error (DataError): The error of the line.
    """

    error: DataError


def suffix_of(file: File) -> str:
    """Return the suffix of a file, or of the file in a zip file, without .gz, such as ".csv"."""
    name = str(file)
    name = name[:-3] if name.lower().endswith(".gz") else name
    name = name_inside(name) if name.lower().endswith(".zip") else name
    return os.path.splitext(name)[1].lower()


def is_json_lines(file: File) -> bool:
    """Return whether a file may hold JSON lines, by its suffix: .jsonl, .json or .ndjson."""
    return suffix_of(file) in (".jsonl", ".json", ".ndjson")


def read_lines(
    path: File, at: Optional[Bookmark] = None, with_lost: bool = False
) -> Iterator[Line]:
    """Yield every line of a text file without its line end, with its number from 1.

    Lines end with LF or CRLF; a byte order mark at the start of a line is dropped. Gzip and zip
    are recognised by their content, not by the file's name. The encoding is UTF-8 if neither the
    bookmark nor a byte order mark names another.

    path (File): The file; "-" for standard input.
    at (Optional[Bookmark]): Position to begin at; updated with the beginning and end of each line.
    with_lost (bool): Whether lines that are left out because they cannot be read are yielded as
        ``LostLine``, because a reader that combines several lines must know of the gap.
    RAISES (DataError): If the file is missing, a directory, empty, unreadable,
        damaged, not text, or has a NUL byte or a line of more than MAX_LINE characters.
    """
    at = at or Bookmark()
    at.path, number = path, at.spot
    with opened(path, at) as stream:
        encoding = stream.encoding or at.encoding or "utf-8"
        while raw := stream.readline(MAX_LINE + 1):
            number += 1
            if at.section and not at.has(number):
                continue
            at.begin, at.end = number - 1, number
            try:
                line = _checked(raw, encoding, at)
            except DataError as error:
                if at.bad is None:
                    raise
                line = LostLine(UNREADABLE.sub("\ufffd", raw).rstrip("\r\n"))
                line.error = error
                if not raw.endswith("\n"):
                    _skip(stream, 1)
                if not with_lost:
                    at.refuse(error)
                    continue
            yield number, line
    if number == 0 and at.has(1):
        raise DataError(path, "the file is empty")


def _skip(stream: io.TextIOBase, n_lines: int) -> None:
    while n_lines > 0 and (part := stream.readline(MAX_LINE)):
        n_lines -= part.endswith("\n")


def cut_lines(
    paths: Sequence[str], at: Bookmark, size: Callable[[], int]
) -> Iterator[Tuple[Dict[str, Any], str]]:
    """Cut files into pieces of whole lines, each of about a given size. The last piece of each file
    is empty.

    paths (Sequence[str]): The files.
    at (Bookmark): Position to begin at; moved along.
    size (Callable[[], int]): Returns the number of characters for the next piece.
    RETURNS (Iterator[Tuple]): Position of each piece (see ``Bookmark.mark``), and its lines.
    RAISES (DataError): If a file cannot be read.
    """
    for number, path in enumerate(paths[at.file :], start=at.file):
        at.open(number)
        with opened(path, at) as stream:
            piece = "\n"
            while piece:
                piece = stream.read(size())
                piece += stream.readline(MAX_LINE + 1)
                yield at.mark(), piece
                at.spot = at.begin = at.end = at.spot + piece.count("\n")


def read_text(path: Union[str, Path], at: Optional[Bookmark] = None, most: int = MAX_FILE) -> str:
    """Read a whole text file, plain or compressed, in the encoding that ``read_lines`` would use.

    path (Union[str, Path]): The file.
    at (Optional[Bookmark]): Names the encoding.
    most (int): Largest number of characters.
    RAISES (DataError): If the file cannot be read, see ``read_lines``, or is too large.
    """
    at, parts, size = at or Bookmark(), list[str](), 0
    with opened(path, at) as stream:
        limit = most_unpacked(os.path.getsize(path) if os.path.isfile(path) else most)
        # Not read(most), which would allocate that much memory at once.
        while size <= min(most, limit) and (part := stream.read(1 << 20)):
            parts.append(part)
            size += len(part)
    if not size:
        raise DataError(path, "the file is empty")
    if size > limit:
        raise DataError(path, TOO_LARGE)
    if size > most:
        text = f"holds more than {most >> 20:,} MB, too much to read as a whole"
        raise DataError(path, f"{text}: convert it to JSON lines (.jsonl), one record per line")
    content = "".join(parts).removeprefix("\ufeff")
    if found := UNREADABLE.search(content):
        begin = content.rfind("\n", 0, found.start()) + 1
        text = _not_text(content[begin:].partition("\n")[0], stream.encoding, at)
        raise DataError(path, text, content.count("\n", 0, begin) + 1)
    return content


def read_json_lines(path: File, at: Bookmark) -> Iterator[Tuple[int, Dict[str, Any]]]:
    """Return an iterator over the objects of a JSONL file with their line numbers.

    path (File): The file.
    at (Bookmark): Position to begin at, see ``read_lines``.
    RAISES (DataError): As ``read_lines``, or if a line is not a JSON object.
    """
    lines = (line for line in read_lines(path, at) if line[1] and not line[1].isspace())
    return at.try_each(lambda line: (line[0], json_object(path, *line)), lines)


def json_object(path: object, number: int, line: str) -> Dict[str, Any]:
    """Parse a line of JSON lines.

    path (object): The file.
    number (int): Number of the line.
    RAISES (DataError): If the line is not a JSON object.
    """
    try:
        value = parse_json(line)
    except json.JSONDecodeError as error:
        text = f"not valid JSON at column {error.colno}: {error.msg}; the line is {short(line)}"
        raise DataError(path, text, number) from None
    except ValueError as error:
        raise DataError(path, f"not readable as JSON: {error}", number) from None
    if not isinstance(value, dict):
        text = f"expected a JSON object such as {{...}}, found {kind(value)}: {short(line)}"
        raise DataError(path, text, number)
    if "\\u" in line:
        check_surrogates(value, path, number)
    return value


def check_surrogates(value: Any, path: object, line: Optional[int] = None) -> None:
    """Check that a value from JSON has no lone surrogate (half of a pair), which no file in UTF-8
    can hold.

    RAISES (DataError): If the value has a lone surrogate.
    """
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        text = f"{half} is half of a character (a lone surrogate): correct or remove it"
        raise DataError(path, text, line) from None


def check_readable(path: Union[str, Path], or_folder: bool = False) -> None:
    """Check that a file can be read, without opening it, because it may be a pipe.

    or_folder (bool): Whether a directory is allowed, too.
    RAISES (DataError): If the file is missing or a directory, or the user may not read it.
    """
    try:
        if stat.S_ISDIR(os.stat(path).st_mode) and not or_folder:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _unreadable(path, error) from None


def is_pipe(path: Union[str, Path]) -> bool:
    """Return whether a file can be read only once."""
    is_other = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    return str(path) == STDIN or is_other


def check_encoding(name: str) -> None:
    """Check that there is an encoding of text with a name.

    RAISES (LookupError): If there is no such encoding.
    """
    "\n".encode(name)


@contextmanager
def opened(path: Union[str, Path], at: Bookmark) -> Iterator[io.TextIOBase]:
    """Open a text file at a position, and yield its decompressed content. Lines keep their ends,
    and bytes that are not text become ``UNREADABLE``.

    at (Bookmark): Position to begin at. Names the encoding, and for errors the last line that was
        read.
    RAISES (DataError): As ``opened_bytes``, or if the encoding is not known.
    """
    if at.piece is not None:
        yield io.StringIO(at.piece)
        return
    with opened_bytes(path, at) as stream:
        encoding = _encoding_of(stream, path, at)
        text = io.TextIOWrapper(stream, encoding, "thincdialog.unreadable", newline="\n")
        _skip(text, at.spot)
        yield text


@contextmanager
def opened_bytes(path: Union[str, Path], at: Optional[Bookmark] = None) -> Iterator[BinaryIO]:
    """Open a file, and yield its decompressed content.

    at (Optional[Bookmark]): Names the last line that was read, for errors.
    RAISES (DataError): If the file cannot be opened or read, or changes while it is read.
    """
    try:
        file = io.FileIO(0, closefd=False) if str(path) == STDIN else io.FileIO(path)
        with io.BufferedReader(file, 1 << 18) as packed:
            if stat.S_ISCHR(os.fstat(packed.fileno()).st_mode) and not packed.isatty():
                raise DataError(path, "is a device: give a file or a pipe")
            before = os.fstat(packed.fileno())
            with unpacked(packed, path) as stream:
                yield stream
            after = before if str(path) == STDIN else os.stat(path)
            if not os.path.samestat(before, after) or before.st_size != after.st_size:
                raise DataError(path, "changed while it was read: start again when it is complete")
    except (EOFError, gzip.BadGzipFile, BadZipFile, zlib.error) as error:
        line = at.end if at and at.end else None
        text = f"the compressed data is damaged or cut off{' after this line' if line else ''}"
        raise DataError(path, f"{text} ({error}): copy the file again", line) from None
    except OSError as error:
        raise _unreadable(path, error) from None


def _encoding_of(stream: Any, path: object, at: Bookmark) -> str:
    """Return the encoding of a file: that of its byte order mark, that of the bookmark, or
    UTF-8."""
    head = stream.peek(4)
    marked = next((name for mark, name in BOMS.items() if head.startswith(mark)), "")
    encoding = marked or at.encoding or "utf-8"
    try:
        name = codecs.lookup(encoding).name
        check_encoding(encoding)
    except LookupError:
        text = f"there is no encoding '{encoding}': give one such as cp1252 or latin-1"
        raise DataError(path, text) from None
    if name in ("utf-16", "utf-32") and head and not marked:
        setting = f"--encoding {name}-le" if at.has_flags else f'encoding = "{name}-le"'
        text = f"has no byte order mark, so {name} is not enough: set {setting} (or -be)"
        raise DataError(path, text)
    return encoding


def _checked(line: str, encoding: str, at: Bookmark) -> str:
    """Return a line without its end, if it is text."""
    if len(line) > MAX_LINE:
        raise at.error(f"the line is longer than {MAX_LINE >> 20} MB: is this a text file?")
    line = line.removeprefix("\ufeff")  # Also within a file, if files were joined.
    if "\0" in line:
        number = _n_bytes(line[: line.index("\0")], encoding) + 1
        text = f"NUL byte at byte {number}: the file is binary, UTF-16 or damaged"
        setting = "--encoding utf-16-le" if at.has_flags else 'encoding = "utf-16-le"'
        raise at.error(f"{text}; save it as UTF-8, or for UTF-16 set {setting} (or -be)")
    if not line.isascii() and UNREADABLE.search(line):
        raise at.error(_not_text(line, encoding, at))
    if at.end == 1 and not line.endswith("\n") and "\r" in line.strip():
        raise at.error(LONE_CR)
    return line.removesuffix("\n").removesuffix("\r")


def _n_bytes(text: str, encoding: str) -> int:
    # Some encodings begin with a byte order mark.
    return len(text.encode(encoding, "surrogateescape")) - len("".encode(encoding))


def _not_text(line: str, encoding: str, at: Bookmark) -> str:
    """Describe the first byte of a line that cannot be decoded, and suggest another encoding."""
    before, _ = UNREADABLE.split(line, maxsplit=1)
    byte = ord(line[len(before)]) & 0xFF
    text = f"not {encoding.upper()}: byte {_n_bytes(before, encoding) + 1} is 0x{byte:02x}"
    if encoding.upper() != "UTF-8":
        setting = "--encoding" if at.has_flags else "'encoding'"
        return f"{text}; check that {setting} fits the file"
    what, name, others = "Latin-1 or Windows-1252?", "cp1252", ""
    # In languages with Latin letters, several non-ASCII letters in a row are unusual.
    if re.search(rb"[\x80-\xff]{3}", line.encode("utf-8", "surrogateescape")):
        what, name, others = "of another script?", "shift_jis", " (or gb18030, cp1251, ...)"
    setting = f"--encoding {name}" if at.has_flags else f'encoding = "{name}"'
    return f"{text} ({what}): save the file as UTF-8, or set {setting}{others}"


def _unreadable(path: Union[str, Path], error: OSError) -> DataError:
    """Make the error for a file that cannot be opened."""
    if isinstance(error, IsADirectoryError):
        if (Path(path) / "state.json").is_file():
            text = "is a folder that the library datasets has saved: read it with "
            return DataError(path, f"{text}thincdialog.Dataset.v1")
        text = "is a directory: give a file in it"
        if not any(is_data(name) for name in os.listdir(path)):
            text += f" (none here ends in one of {', '.join(DATA_SUFFIXES)})"
        return DataError(path, text)
    if isinstance(error, FileNotFoundError):
        if os.path.islink(path):
            return DataError(path, f"is a link to {os.readlink(path)}, which does not exist")
        folder, name = Path(path).parent, Path(path).name
        where = "" if folder.is_absolute() else f" in {folder.absolute()}"
        where += ", where the command runs" * (folder == Path())
        tilde = "; only a shell expands ~: write the full path" * str(path).startswith("~")
        try:
            return DataError(path, f"file not found{where}{nearest(name, os.listdir(folder))}")
        except OSError:
            text = f"file not found: the folder {folder.absolute()} cannot be read{tilde}"
            return DataError(path, text)
    return DataError(path, f"cannot be read: {error.strerror or error}")
