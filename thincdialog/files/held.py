"""Temporary files and folders, each locked by its process. The system releases the lock when the
process ends, so the next process recognizes the files of dead processes, and removes them."""

import fcntl
import os
import re
import shutil
import stat
import tempfile
import uuid
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Iterator

# Temporary name of a file or folder that is being written, or (with "old") replaced.
_BESIDE = re.compile(r"\.(?P<name>.+?)\.(?P<old>old\.)?[0-9a-f]{8}", re.DOTALL)
# Flags for opening a path without following links or waiting for pipes.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
N_TRIES = 3
# Name of the folder from which worker processes read an agent.
AGENT = "thincdialog-agent"


def temporary_folder() -> Path:
    """Return the folder in which runs that save nothing make their temporary folders. Unlike
    ``tempfile.gettempdir``, this does not write a test file, which a killed process would leave
    there."""
    return Path(tempfile.tempdir or os.environ.get("TMPDIR") or "/tmp")


def temporary_name(place: Path, old: str = "") -> Path:
    """Return a new temporary name for a file or folder, in the same parent folder.

    place (Path): Final path of the file or folder.
    old (str): "old." for a folder that is being replaced.
    """
    return place.with_name(f".{place.name}.{old}{uuid.uuid4().hex[:8]}")


@contextmanager
def held(place: Path, mode: int, is_folder: bool = False) -> Iterator[Path]:
    """Make a locked temporary file or folder next to its final path, and remove it at the end,
    unless it was moved. Before, remove files that dead processes left for the same path.

    place (Path): The final path.
    mode (int): Permissions, from which the process's umask is subtracted.
    is_folder (bool): Whether to make a folder.
    YIELDS (Path): The temporary path.
    RAISES (OSError): If the file or folder cannot be made.
    """
    repair(place.parent, re.escape(place.name))
    with ExitStack() as stack:
        for tries_left in reversed(range(N_TRIES)):
            path = temporary_name(place)
            if is_folder:
                os.mkdir(path, mode)
            else:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
            # Another process may have removed the file before it was locked here, so try again. The
            # last attempt works without a lock, because some file systems have no locks.
            if stack.enter_context(locked(path)) or not tries_left:
                break
            remove_path(path)
        try:
            yield path
        finally:
            remove_path(path)


def repair(parent: Path, names: str, is_ours: bool = False) -> None:
    """Undo the unfinished work of dead processes: restore folders that were being replaced, and
    remove files and folders that were being written.

    parent (Path): The folder that contains them. If it cannot be read, nothing is done.
    names (str): Regular expression for the final names of the files and folders.
    is_ours (bool): Whether no other process can be writing there, so that locks are ignored.
    """
    try:
        found = [path for path in sorted(parent.iterdir()) if _BESIDE.fullmatch(path.name)]
    except OSError:
        return
    for path in found:
        name = _BESIDE.fullmatch(path.name)
        if name is None or not re.fullmatch(names, name["name"]):
            continue
        place = parent / name["name"]
        with nullcontext(True) if is_ours else locked(path) as is_left:
            if is_left and name["old"] and not place.exists():
                path.rename(place)
            elif is_left:
                remove_path(path)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Lock a file or folder while the context is active.

    YIELDS (bool): Whether it is locked now. False if it is gone, a link or a pipe, if another
        process has locked it, or if the file system has no locks.
    """
    try:
        handle = os.open(path, _READ)
    except OSError:
        yield False
        return
    try:
        yield _lock(handle, path)
    finally:
        os.close(handle)


def _lock(handle: int, path: Path) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        facts = os.fstat(handle)
        is_plain = stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode)
        return is_plain and os.path.samestat(facts, os.lstat(path))
    except OSError:
        return False


def remove_path(path: Path) -> None:
    """Remove a file or folder, and ignore errors."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
