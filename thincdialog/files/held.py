"""Temporary files and folders, each held by a lock. The system releases the lock when the process
ends, so the next process finds the files of dead processes, and removes them."""

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

# Name of a file or folder while it is written, or (old) while it is replaced.
_BESIDE = re.compile(r"\.(?P<name>.+?)\.(?P<old>old\.)?[0-9a-f]{8}", re.DOTALL)
# Flags with which opening neither follows a link nor waits for a pipe.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
N_TRIES = 3
# Name of the folder from which worker processes read an agent.
AGENT = "thincdialog-agent"


def temporary_folder() -> Path:
    """Return the parent of temporary folders of runs that save nothing. (``tempfile`` would test it
    with a file, which stays there after a kill.)"""
    return Path(tempfile.tempdir or os.environ.get("TMPDIR") or "/tmp")


def temporary_name(place: Path, old: str = "") -> Path:
    """Return a new name in the same folder."""
    return place.with_name(f".{place.name}.{old}{uuid.uuid4().hex[:8]}")


@contextmanager
def held(place: Path, mode: int, is_folder: bool = False) -> Iterator[Path]:
    """Make a file or folder next to its place; remove it at the end, unless it was moved. First,
    remove files that dead processes left next to the same place.

    mode (int): Its permissions, from which the process's umask is subtracted.
    RAISES (OSError): If it cannot be made.
    """
    repair(place.parent, re.escape(place.name))
    with ExitStack() as stack:
        for tries_left in reversed(range(N_TRIES)):
            path = temporary_name(place)
            if is_folder:
                os.mkdir(path, mode)
            else:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
            # Another process may have removed it before it was locked. Some file systems have no
            # locks.
            if stack.enter_context(locked(path)) or not tries_left:
                break
            _remove(path)
        try:
            yield path
        finally:
            _remove(path)


def repair(parent: Path, names: str, is_ours: bool = False) -> None:
    """Undo the unfinished work of dead processes: restore folders that were being replaced, and
    remove files and folders that were being written.

    parent (Path): The folder that contains them; if it cannot be read, nothing is done.
    names (str): Pattern of the final names of files and folders.
    is_ours (bool): Whether no other process can be writing there, so that locks can be ignored.
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
                _remove(path)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Lock a file or folder of this user in this context.

    YIELDS (bool): Whether it is locked, and not gone, locked by another process, or on a file
        system without locks.
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
        is_same = os.path.samestat(facts, os.lstat(path))
    except OSError:
        return False
    is_plain = stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode)
    return is_same and is_plain and facts.st_uid == os.geteuid()


def _remove(path: Path) -> None:
    """Remove a file or folder, if that is possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
