"""Write files and folders completely or not at all: under a temporary name, then renamed."""

import os
import re
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Iterator, Optional

from ..errors import OutputError
from .held import held, locked, temporary_name
from .plain_file import real_path

_STREAM = re.compile(r"/dev/(?:stdout|(stderr)|fd/(\d+))|/proc/self/fd/(\d+)")


def open_already(path: Path) -> Optional[int]:
    """Return the file descriptor that a path such as /dev/stdout names; None for other paths."""
    match = _STREAM.fullmatch(os.path.abspath(path))
    if match is None:
        return None
    return 2 if match[1] else int(match[2] or match[3] or 1)


def is_plain(path: Path) -> bool:
    """Return whether a path names a plain file, or no file yet. A path that names a pipe, a device
    or an open stream is not plain, even if the stream writes to a plain file."""
    if open_already(path) is not None:
        return False
    return path.is_file() or not path.exists()


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Write a file completely or not at all. At the end, the file is safe on the disk and replaces
    ``path``. After an error, the new file is removed, and an old file is unchanged.

    path (Path): Final path of the file, in a folder that exists. If it is a link, the file that it
        leads to is replaced. A path that is not a plain file (/dev/stdout) is written to directly.
    YIELDS (Path): Path of the file to write.
    RAISES (OSError): If the file cannot be written to the disk or moved to its final path.
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
    """Turn errors while writing to a path into errors for the user.

    remedy (str): Advice for the user, as a sentence.
    verb (str): Verb of the message, before "written".
    RAISES (OutputError): If the path cannot be written to.
    """
    try:
        yield
    except OSError as error:
        # NumPy's error has no strerror, only the number of values that were written.
        reason = error.strerror or f"the disk may be full ({error})"
        raise OutputError(f"{path}  {verb} written: {reason}. {remedy}".rstrip()) from None


def sync(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are safe on the disk, even if the
    power fails."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """Write a folder completely or not at all. At the end, the new folder is safe on the disk and
    replaces ``folder``. After an error, the new folder is removed, and an old folder is unchanged.

    folder (Path): Final path of the folder, in a folder that exists.
    YIELDS (Path): Path of the new, empty folder.
    RAISES (OutputError): If a file or folder cannot be written.
    """
    remedy = "Free some space or choose another folder with --output"
    kept = "what was saved before is untouched."
    with writing(folder, f"{remedy}; {kept}"), whole_folder(folder) as new:
        yield new


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Write a folder like ``written_whole``, with the errors of the system.

    RAISES (OSError): If a file or folder cannot be written.
    """
    with held(folder, 0o777, is_folder=True) as new:
        yield new
        for path in [*new.rglob("*"), new]:
            sync(path)
        replace(new, folder)


def replace(new: Path, folder: Path) -> None:
    """Replace a folder with a new one. At any moment, one of them exists on the disk.

    new (Path): The new folder.
    folder (Path): The folder to replace, if it exists.
    """
    if not folder.exists():
        new.rename(folder)
        sync(folder.parent)
        return
    old = temporary_name(folder, "old.")
    with locked(folder):
        try:
            folder.rename(old)
            new.rename(folder)
        except BaseException:  # Including a second Ctrl-C.
            if old.exists() and not folder.exists():
                old.rename(folder)
            raise
        sync(folder.parent)
        shutil.rmtree(old, ignore_errors=True)


def remove(folder: Path) -> None:
    """Remove a folder. It is renamed first, so that an interruption never leaves a part of it under
    its name.

    folder (Path): The folder to remove; it stays if it cannot be renamed.
    """
    away = temporary_name(folder)
    try:
        folder.rename(away)
    except OSError:
        return
    shutil.rmtree(away, ignore_errors=True)
