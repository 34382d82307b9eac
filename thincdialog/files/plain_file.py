"""Opening of all files of saved models and of runs. These files are untrusted, so only plain files
inside the expected folder are read."""

import errno
import io
import os
import stat
from pathlib import Path
from typing import BinaryIO, Optional, Union

# Largest file of JSON, or of a tokenizer, in a model's or run's folder; the size of an array is
# checked against its header instead.
MAX_STORED = 1 << 30
# A sparse file of more bytes than this that takes almost no disk space is treated as an attack.
MAX_HOLLOW = 1 << 24
_HOLLOW_TIMES, _BLOCK = 256, 512
_KINDS = (
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISFIFO, "it is a pipe"),
    (stat.S_ISSOCK, "it is a socket"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
)
# Opening a pipe or a device must not block; links are resolved before.
_FLAGS = ("O_CLOEXEC", "O_NONBLOCK", "O_NOFOLLOW", "O_NOCTTY", "O_BINARY")


def open_plain(
    path: Path, most: Optional[int] = None, *, within: Optional[Path] = None
) -> BinaryIO:
    """Open a plain file for reading.

    path (Path): Path of the file; a link may lead to another file within the folder.
    most (Optional[int]): Largest number of bytes; None for any.
    within (Optional[Path]): The folder that must contain the file; its parent folder if None.
    RAISES (OSError): If the file is missing, not a plain file, outside the folder, too large, or
        sparse. ``strerror`` is the reason, ``filename`` is the path.
    """
    place = check_inside(path, path.parent if within is None else within)
    _check_kind(path, os.stat(place))
    file = open(os.open(place, sum(getattr(os, flag, 0) for flag in _FLAGS)), "rb")
    try:
        facts = os.fstat(file.fileno())
        _check_kind(path, facts)
        check_whole(path, file)
        if most is not None and facts.st_size > most:
            raise _refused(path, f"it has {facts.st_size:,} bytes, expected {most:,} at most")
    except BaseException:
        file.close()
        raise
    return file


def read_plain(path: Path, most: int = MAX_STORED) -> bytes:
    """All of a plain file; arguments and errors as of ``open_plain``."""
    with open_plain(path, most) as file:
        return file.read(os.fstat(file.fileno()).st_size)


def not_plain(path: Path) -> str:
    """Why a file can be neither read nor written in its folder; "" if it can, or is not there."""
    try:
        open_plain(path).close()
    except FileNotFoundError:
        return "it is a link to nothing" if path.is_symlink() else ""
    except OSError as error:
        return error.strerror or str(error)
    return ""


def size_of(file: BinaryIO) -> int:
    """Bytes of a file that is open."""
    return os.fstat(file.fileno()).st_size


def check_inside(path: Path, folder: Path) -> str:
    """Check that a path does not lead out of a folder, and return where it leads.

    RAISES (OSError): If it does.
    """
    place, around = os.path.realpath(path), os.path.realpath(folder)
    if os.path.commonpath([place, around]) != around:
        raise _refused(path, f"it leads out of its folder, to {place}")
    return place


def _check_kind(path: Path, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        what = next((text for is_it, text in _KINDS if is_it(facts.st_mode)), "it is no file")
        raise _refused(path, f"{what}, expected a plain file")


def check_whole(path: Union[str, Path], file: io.IOBase) -> None:
    """See that a file which is open, and at its begin, is no hole of gigabytes.

    RAISES (OSError): If it is.
    """
    facts = os.fstat(file.fileno())
    if _is_hollow(file, facts):
        raise _refused(path, f"it says {facts.st_size:,} bytes, but holds next to nothing")


def _is_hollow(file: io.IOBase, facts: os.stat_result) -> bool:
    """Whether nearly all of a large file is a hole: zeros that weigh nothing. Some file systems
    do not count blocks, but then they know of no holes."""
    blocks = getattr(facts, "st_blocks", None)
    if facts.st_size <= MAX_HOLLOW or blocks is None or not hasattr(os, "SEEK_HOLE"):
        return False
    if blocks * _BLOCK * _HOLLOW_TIMES >= facts.st_size:
        return False
    try:
        return os.lseek(file.fileno(), 0, os.SEEK_HOLE) < facts.st_size
    except OSError:
        return False
    finally:
        file.seek(0)


def _refused(path: Union[str, Path], reason: str) -> OSError:
    return OSError(errno.EINVAL, reason, str(path))
