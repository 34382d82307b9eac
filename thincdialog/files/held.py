"""Temporary files and folders, each held by a lock. It goes with the process, however that ends:
so whoever comes next sees what is left of dead ones, and takes it away."""

import fcntl
import os
import re
import shutil
import stat
import tempfile
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Iterator, Optional

# What stands beside its place while it is written, and (old) while it is replaced.
_BESIDE = re.compile(r"\.(?P<name>.+?)\.(?P<old>old\.)?[0-9a-f]{8}", re.DOTALL)
# Nothing that is read here is opened: a link, or a pipe that would be waited for.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
N_TRIES = 3
# What worker processes get an agent from.
AGENT = "thincdialog-agent"


def temporary_folder() -> Path:
    """Where runs that save nothing have their temporary folders. (``tempfile`` would try it with a
    file, which a kill may leave there.)"""
    return Path(tempfile.tempdir or os.environ.get("TMPDIR") or "/tmp")


def beside(place: Path, old: str = "") -> Path:
    """A new name beside a place."""
    return place.with_name(f".{place.name}.{old}{uuid.uuid4().hex[:8]}")


@contextmanager
def held(place: Path, mode: int, is_folder: bool = False) -> Iterator[Path]:
    """A new file or folder beside a place; at the end it is gone, unless it was moved. What dead
    processes left beside the same place goes first.

    mode (int): Who may do what with it, but for the process's umask.
    RAISES (OSError): If it cannot be made.
    """
    mend(place.parent, re.escape(place.name))
    for tries_left in reversed(range(N_TRIES)):
        path = beside(place)
        if is_folder:
            os.mkdir(path, mode)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        handle = _lock(path)
        # Somebody may have found it before it was locked. Some file systems have no locks.
        if handle is not None or not tries_left:
            break
        _remove(path)
    try:
        yield path
    finally:
        _remove(path)
        if handle is not None:
            os.close(handle)


@contextmanager
def holding(path: Path) -> Iterator[None]:
    """A stretch in which a file or folder that is there is held, as far as that can be."""
    handle = _lock(path)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def mend(parent: Path, names: str, is_ours: bool = False) -> None:
    """Undo what dead processes left half done: folders that were being replaced come back,
    others that were being written go, and so do files.

    parent (Path): The folder around them; if it cannot be read, nothing is done.
    names (str): Pattern of the names of whole folders and files.
    is_ours (bool): Whether nobody else can be at work there, so that locks say nothing.
    """
    try:
        found = [path for path in sorted(parent.iterdir()) if _BESIDE.fullmatch(path.name)]
    except OSError:
        return
    for path in found:
        name = _BESIDE.fullmatch(path.name)
        if name is None or not re.fullmatch(names, name["name"]):
            continue
        handle = None if is_ours else _lock(path)
        if handle is None and not is_ours:
            continue
        place = parent / name["name"]
        if name["old"] and not place.exists():
            path.rename(place)
        else:
            _remove(path)
        if handle is not None:
            os.close(handle)


def _lock(path: Path) -> Optional[int]:
    """Hold a file or folder of this user's until the handle is closed.

    RETURNS (Optional[int]): None if it is gone, somebody holds it, or it cannot be held.
    """
    with suppress(OSError):
        handle = os.open(path, _READ)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            facts = os.fstat(handle)
            is_plain = stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode)
            if is_plain and facts.st_uid == os.geteuid():
                if os.path.samestat(facts, os.lstat(path)):
                    return handle
        except OSError:
            pass
        os.close(handle)
    return None


def _remove(path: Path) -> None:
    """Take a file or folder away, as far as it can be."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
