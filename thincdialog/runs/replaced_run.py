"""The old run in a folder in which a new run begins. It is moved away before the new run writes
anything, and deleted once the new run has trained and has written a checkpoint, or has ended. If
the new run fails before, the old run is moved back. If the new run was killed, the next run in the
folder moves the old run back.

    .replacing   a part of the old run, while it is moved; the other part is in the folder
    .replaced    the old run; the folder has files of the new run

The run's folder itself is not renamed, because it may be a mount point, the working directory of a
process, or contain other files.
"""

import shutil
from pathlib import Path
from typing import List

from ..files.held import temporary_name
from ..files.saved_model import BEST, CONFIG, LAST
from ..files.whole_file import sync, writing
from ..loggers.values import ID_FILES
from .checkpoints import Checkpoints
from .run_log import CANNOT_BE, LOG, OTHER_FOLDER
from .scores_file import SCORES

WRITTEN_WHOLE = (BEST, LAST, CONFIG, SCORES)
MOVING, REPLACED = ".replacing", ".replaced"


def move_away(folder: Path) -> None:
    """Move the run in a folder away, if there is one, so that a new run can begin. The rest of a
    run that was killed before it saved a model is deleted.

    RAISES (OutputError): If the folder cannot be written.
    """
    parts, moving = _parts(folder), folder / MOVING
    with writing(folder, OTHER_FOLDER, CANNOT_BE):
        if not any(path.is_dir() for path in parts):
            for path in parts:
                path.unlink()
            return
        moving.mkdir()
        shutil.copyfile(folder / LOG, moving / LOG)  # The log stays, because it is locked.
        sync(moving / LOG)
        for path in parts:
            path.rename(moving / path.name)
        moving.rename(folder / REPLACED)
        sync(folder)


def move_back(folder: Path) -> bool:
    """Move the old run back, and delete the new one. If this is interrupted at any point, another
    call completes it.

    RETURNS (bool): Whether there was an old run.
    RAISES (OutputError): If the folder cannot be written.
    """
    moving, replaced = folder / MOVING, folder / REPLACED
    if not moving.is_dir() and not replaced.is_dir():
        return False
    with writing(folder, OTHER_FOLDER, CANNOT_BE):
        if replaced.is_dir():
            for path in _parts(folder):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            shutil.copyfile(replaced / LOG, folder / LOG)
            sync(folder / LOG)
            replaced.rename(moving)
        for path in moving.iterdir():
            if path.name != LOG:
                path.rename(folder / path.name)
        sync(folder)
        shutil.rmtree(moving)
    return True


def delete_replaced(folder: Path) -> None:
    """Delete the old run, if there is one.

    RAISES (OutputError): If the folder cannot be written.
    """
    replaced = folder / REPLACED
    if replaced.is_dir():
        away = temporary_name(replaced)
        with writing(folder, OTHER_FOLDER, CANNOT_BE):
            replaced.rename(away)
        shutil.rmtree(away, ignore_errors=True)


def _parts(folder: Path) -> List[Path]:
    """Return the files and folders that belong to the run in a folder, except its log."""
    checkpoints = Checkpoints(folder)
    names = [*WRITTEN_WHOLE, *ID_FILES]
    parts = [*(folder / name for name in names), *map(checkpoints.at, checkpoints.steps())]
    return [path for path in parts if path.exists()]
