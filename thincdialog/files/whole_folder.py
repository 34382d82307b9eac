"""Write folders completely or not at all: under a temporary name, then renamed."""

import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from .held import held, locked, temporary_name
from .whole_file import sync, writing


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
    with writing(folder, f"{remedy}; {kept}"), held(folder, 0o777, is_folder=True) as new:
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
