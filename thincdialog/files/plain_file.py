"""Open the files of saved models and of runs. These files are untrusted, so only plain files inside
the expected folder are read."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Optional, Union

# Maximum size in bytes of a JSON file or a tokenizer's file in the folder of a model or run. The
# size of an array is checked against its header instead.
MAX_STORED = 1 << 30
_KINDS = (
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISFIFO, "it is a pipe"),
    (stat.S_ISSOCK, "it is a socket"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
)
# Flags for opening a path without blocking on a pipe or a device, and without following links,
# which are resolved before.
_FLAGS = ("O_CLOEXEC", "O_NONBLOCK", "O_NOFOLLOW", "O_NOCTTY", "O_BINARY")


def open_plain(
    path: Path, most: Optional[int] = None, *, within: Optional[Path] = None
) -> BinaryIO:
    """Open a plain file for reading.

    path (Path): Path of the file; a link may lead to another file within the folder.
    most (Optional[int]): Maximum size of the file in bytes; None for no limit.
    within (Optional[Path]): The folder that must contain the file; if None, the parent folder of
        the path.
    RAISES (OSError): If the file is missing, not a plain file, outside the folder, or too large.
        ``strerror`` is the reason, ``filename`` is the path.
    """
    place = check_inside(path, path.parent if within is None else within)
    _check_kind(path, os.stat(place))
    file = open(os.open(place, sum(getattr(os, flag, 0) for flag in _FLAGS)), "rb")
    try:
        facts = os.fstat(file.fileno())
        _check_kind(path, facts)
        if most is not None and facts.st_size > most:
            raise _refusal(path, f"it has {facts.st_size:,} bytes, expected {most:,} at most")
    except BaseException:
        file.close()
        raise
    return file


def read_plain(path: Path, most: int = MAX_STORED) -> bytes:
    """Return the content of a plain file. Arguments and errors are those of ``open_plain``."""
    with open_plain(path, most) as file:
        return file.read(os.fstat(file.fileno()).st_size)


def not_plain(path: Path) -> str:
    """Return the reason why a path in a folder must not be read or written; "" if it is a plain
    file, or if there is no file yet."""
    try:
        open_plain(path).close()
    except FileNotFoundError:
        return "it is a link to nothing" if path.is_symlink() else ""
    except OSError as error:
        return error.strerror or str(error)
    return ""


def size_of(file: BinaryIO) -> int:
    """Return the size of an open file in bytes."""
    return os.fstat(file.fileno()).st_size


def check_inside(path: Path, folder: Path) -> str:
    """Check that a path does not lead out of a folder, and return the path without links.

    RAISES (OSError): If the path leads out of the folder.
    """
    place, around = os.path.realpath(path), os.path.realpath(folder)
    if os.path.commonpath([place, around]) != around:
        raise _refusal(path, f"it leads out of its folder, to {place}")
    return place


def real_path(path: Union[str, Path]) -> Path:
    """Return the absolute path without links. A link that leads to itself is left unchanged, so
    that opening it raises an ``OSError``; ``Path.resolve`` raises other errors in some versions of
    Python."""
    return Path(os.path.realpath(path))


def _check_kind(path: Path, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        what = next((text for is_it, text in _KINDS if is_it(facts.st_mode)), "it is not a file")
        raise _refusal(path, f"{what}, expected a plain file")


def _refusal(path: Path, reason: str) -> OSError:
    return OSError(errno.EINVAL, reason, str(path))
