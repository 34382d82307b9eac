"""Folders that are written whole or not at all: beside their place, then renamed."""

import re
import shutil
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from ..errors import OutputError
from .whole_file import sync

# What stands beside a folder while it is written, and while it is replaced.
_BESIDE = re.compile(r"\.(?P<name>.+?)\.(?P<old>old\.)?[0-9a-f]{8}")


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """A new folder to write into. At the end it is safe on the disk, and takes the place
    of ``folder``; after an error it is gone, and an old one stays as it was.

    folder (Path): Its place; the folder around it is there already.
    YIELDS (Path): Where to write.
    RAISES (OutputError): If something cannot be written.
    """
    beside = _beside(folder)
    try:
        beside.mkdir()
        yield beside
        for path in [*beside.rglob("*"), beside]:
            sync(path)
        replace(beside, folder)
    except OSError as error:
        # NumPy says only how much it could write.
        reason = error.strerror or f"the disk may be full ({error})"
        raise OutputError(
            f"{folder}  could not be written: {reason}. Free some space or "
            "choose another folder with --output; what was saved before is untouched."
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def replace(new: Path, folder: Path) -> None:
    """Put a folder in the place of another; at no moment are both gone."""
    if not folder.exists():
        new.rename(folder)
        sync(folder.parent)
        return
    old = _beside(folder, "old.")
    try:
        folder.rename(old)
        new.rename(folder)
    except BaseException:  # A second Ctrl-C, too.
        if old.exists() and not folder.exists():
            old.rename(folder)
        raise
    sync(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def remove(folder: Path) -> None:
    """Take a folder away: at once from its place, so that no half of it is ever there.

    folder (Path): If it cannot be taken away, it stays as it is.
    """
    beside = _beside(folder)
    try:
        folder.rename(beside)
    except OSError:
        return
    shutil.rmtree(beside, ignore_errors=True)


def _beside(folder: Path, old: str = "") -> Path:
    return folder.with_name(f".{folder.name}.{old}{uuid.uuid4().hex[:8]}")


def mend(parent: Path, names: str) -> None:
    """Undo what a process that was killed left half done: folders that were being
    replaced come back, others that were being written go, and so do files.

    parent (Path): The folder around them.
    names (str): Pattern of the names of whole folders and files.
    """
    for path in sorted(parent.iterdir()):
        found = _BESIDE.fullmatch(path.name)
        if found and re.fullmatch(names, found["name"]):
            place = parent / found["name"]
            if path.is_file():
                path.unlink()
            elif found["old"] and not place.exists():
                path.rename(place)
            else:
                shutil.rmtree(path, ignore_errors=True)
