"""Write files completely or not at all: under a temporary name, then renamed."""

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
    """Return the file descriptor that a path such as /dev/stdout names, if it names one."""
    match = _STREAM.fullmatch(os.path.abspath(path))
    if match is None:
        return None
    return 2 if match[1] else int(match[2] or match[3] or 1)


def is_plain(path: Path) -> bool:
    """Return whether a path is that of a plain file, or of no file yet: not of a pipe, a device or
    an open stream, even if the stream writes to a plain file."""
    if open_already(path) is not None:
        return False
    return path.is_file() or not path.exists()


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a place to write a file. At the end the file is safe on the disk, and replaces ``path``;
    after an error it is removed, and an old file stays as it was.

    path (Path): Its place, in a folder that exists. A link stays a link, and a path that is not a
        plain file (/dev/stdout) is written to directly.
    YIELDS (Path): Where to write.
    RAISES (OSError): If it cannot be brought to the disk, or to its place.
    """
    if not is_plain(path):
        yield path
        return
    target = real_path(path)
    with held(target, 0o666) as temporary:
        yield temporary
        sync(temporary)
        temporary.replace(target)
        with suppress(PermissionError):  # The folder can be written to, but not read.
            sync(target.parent)


@contextmanager
def writing(path: Path, remedy: str = "", verb: str = "could not be") -> Iterator[None]:
    """Turn errors of writing to a path into errors for the user.

    remedy (str): What the user can do if it fails, as a sentence.
    RAISES (OutputError): If it cannot be written.
    """
    try:
        yield
    except OSError as error:
        # NumPy says only how much it could write.
        reason = error.strerror or f"the disk may be full ({error})"
        raise OutputError(f"{path}  {verb} written: {reason}. {remedy}".rstrip()) from None


def sync(path: Path) -> None:
    """Return when a file, or the names in a folder, are safe even if the power fails."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
