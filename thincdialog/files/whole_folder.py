"""Write folders completely or not at all: under a temporary name, then renamed."""

import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from .held import held, locked, temporary_name
from .whole_file import sync, writing


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """Give a new folder to write into. At the end the folder is safe on the disk, and replaces
    ``folder``; after an error it is removed, and an old folder stays as it was.

    folder (Path): Its place, in a folder that exists.
    YIELDS (Path): Where to write.
    RAISES (OutputError): If something cannot be written.
    """
    remedy = "Free some space or choose another folder with --output"
    kept = "what was saved before is untouched."
    with writing(folder, f"{remedy}; {kept}"), held(folder, 0o777, is_folder=True) as new:
        yield new
        for path in [*new.rglob("*"), new]:
            sync(path)
        replace(new, folder)


def replace(new: Path, folder: Path) -> None:
    """Replace a folder by a new one, so that one of them exists at any moment."""
    if not folder.exists():
        new.rename(folder)
        sync(folder.parent)
        return
    old = temporary_name(folder, "old.")
    with locked(folder):
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
    """Remove a folder: rename it first, so that no part of it is ever left in its place.

    folder (Path): The folder; it stays if it cannot be renamed.
    """
    away = temporary_name(folder)
    try:
        folder.rename(away)
    except OSError:
        return
    shutil.rmtree(away, ignore_errors=True)
