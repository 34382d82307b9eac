"""Folders that are written whole or not at all: beside their place, then renamed."""

import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from ..errors import OutputError
from .held import beside, held, holding
from .whole_file import sync


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """A new folder to write into. At the end it is safe on the disk, and takes the place
    of ``folder``; after an error it is gone, and an old one stays as it was.

    folder (Path): Its place; the folder around it is there already.
    YIELDS (Path): Where to write.
    RAISES (OutputError): If something cannot be written.
    """
    try:
        with held(folder, 0o777, is_folder=True) as new:
            yield new
            for path in [*new.rglob("*"), new]:
                sync(path)
            replace(new, folder)
    except OSError as error:
        # NumPy says only how much it could write.
        reason = error.strerror or f"the disk may be full ({error})"
        raise OutputError(
            f"{folder}  could not be written: {reason}. Free some space or "
            "choose another folder with --output; what was saved before is untouched."
        ) from None


def replace(new: Path, folder: Path) -> None:
    """Put a folder in the place of another; at no moment are both gone."""
    if not folder.exists():
        new.rename(folder)
        sync(folder.parent)
        return
    old = beside(folder, "old.")
    with holding(folder):
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
    away = beside(folder)
    try:
        folder.rename(away)
    except OSError:
        return
    shutil.rmtree(away, ignore_errors=True)
