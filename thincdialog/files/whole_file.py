"""Files that are written whole or not at all: beside their place, then renamed."""

import os
import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Iterator, Optional

from ..errors import OutputError
from .held import held
from .real_path import real_path

_STREAM = re.compile(r"/dev/(?:stdout|(stderr)|fd/(\d+))|/proc/self/fd/(\d+)")


def open_already(path: Path) -> Optional[int]:
    """The file descriptor that a path such as /dev/stdout stands for, if it does."""
    match = _STREAM.fullmatch(os.path.abspath(path))
    if match is None:
        return None
    return 2 if match[1] else int(match[2] or match[3] or 1)


def is_plain(path: Path) -> bool:
    """Whether a path is a plain file's, or can become one's: not that of a pipe or a device, nor
    of what is open already, even if that leads to a plain file."""
    if open_already(path) is not None:
        return False
    return path.is_file() or not path.exists()


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write a file. At the end it is safe on the disk, and takes the place of
    ``path``; after an error it is gone, and an old file stays as it was.

    path (Path): Its place; a link stays a link, and what is no plain file (/dev/stdout)
        is written to as it is. The folder around it is there already.
    YIELDS (Path): Where to write.
    RAISES (OSError): If it cannot be brought to the disk, or to its place.
    """
    if not is_plain(path):
        yield path
        return
    target = real_path(path)
    with held(target, 0o666) as beside:
        yield beside
        sync(beside)
        beside.replace(target)
        with suppress(PermissionError):  # Names can be written there, but not read.
            sync(target.parent)


@contextmanager
def writing(path: Path, remedy: str = "", verb: str = "could not be") -> Iterator[None]:
    """A stretch in which something is written to a path.

    remedy (str): What to do if it fails, as a sentence for the user.
    RAISES (OutputError): If it cannot be written.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or "the disk may be full"
        raise OutputError(f"{path}  {verb} written: {reason}. {remedy}".rstrip()) from None


def sync(path: Path) -> None:
    """Return when a file, or the names in a folder, are safe even if the power fails."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
