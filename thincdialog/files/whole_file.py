"""Files that are written whole or not at all: beside their place, then renamed."""

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Iterator

from ..errors import OutputError
from .held import held


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write a file. At the end it is safe on the disk, and takes the place of
    ``path``; after an error it is gone, and an old file stays as it was.

    path (Path): Its place; a link stays a link, and what is no plain file (/dev/stdout)
        is written to as it is. The folder around it is there already.
    YIELDS (Path): Where to write.
    RAISES (OSError): If it cannot be brought to the disk, or to its place.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve()
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
