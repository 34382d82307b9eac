"""The folder in which a run is written. A run that replaces another run is first written to a
subfolder of the run's folder. It replaces the old run once it is sure, that is, once it has trained
and has written a checkpoint, or has ended.

    .thincdialog-new     the new run; deleted if its process was killed
    .thincdialog-ready   the new run once it is sure; if its process was killed during the swap,
                         the next run in the folder completes the swap
    .thincdialog-old     the old run, until it is deleted

The run's folder itself is not replaced, because it may be a mount point, the working directory of a
process, or contain other files. Only its parts (models, checkpoints, files) are renamed.
"""

import shutil
from pathlib import Path
from typing import List, Optional

from ..files.held import AGENT
from ..files.saved_model import BEST, LAST
from ..files.whole_file import sync, writing
from ..loggers.values import ID_FILES
from .checkpoints import Checkpoints
from .run_log import CANNOT, ELSEWHERE, LOG
from .scores_file import SCORES

CONFIG = "config.cfg"
WRITTEN_WHOLE = (BEST, LAST, CONFIG, SCORES)
NEW, READY, OLD = (f".thincdialog-{state}" for state in ("new", "ready", "old"))


class RunPlace:
    """Manage the folder in which a run is currently written.

    folder (Optional[Path]): The run's folder; None if nothing is saved.
    path (Optional[Path]): The folder to write to: ``folder``, or a subfolder of it while an old
        run is there.
    """

    def __init__(self, folder: Optional[Path]):
        self.folder = self.path = folder

    @property
    def is_sure(self) -> bool:
        """Whether the run is in its folder: there was no old run, or it has been replaced."""
        return self.path == self.folder

    def repair(self) -> None:
        """Undo or complete unfinished changes of a process that was killed.

        RAISES (OutputError): If the repair fails.
        """
        if self.folder is None:
            return
        with writing(self.folder, ELSEWHERE, CANNOT):
            ready = self.folder / READY
            if ready.is_dir() and not ready.is_symlink():
                self._swap(self.folder)
            for name in (NEW, OLD):
                shutil.rmtree(self.folder / name, ignore_errors=True)
            Checkpoints(self.folder).repair(*WRITTEN_WHOLE, AGENT)

    def begin_again(self) -> None:
        """Begin a new run, in a subfolder if there is an old run.

        RAISES (OutputError): If the folder cannot be written.
        """
        if self.folder is None or not _holds_run(self.folder):
            return
        with writing(self.folder, ELSEWHERE, CANNOT):
            self.path = self.folder / NEW
            self.path.mkdir()

    def take_over(self) -> None:
        """Replace the old run, completely or not at all, because the new one is sure.

        RAISES (OutputError): If the folder cannot be written.
        """
        if self.is_sure or self.folder is None or self.path is None:
            return
        with writing(self.folder, "The old run is still there.", CANNOT):
            sync(self.path)
            self.path.rename(self.folder / READY)
            self.path = self.folder
        with writing(self.folder, "Train again to repair it.", CANNOT):
            try:
                self._swap(self.folder)
            except KeyboardInterrupt:
                self._swap(self.folder)
                raise

    def drop(self) -> None:
        """Delete a run that ended before it was sure; the old run is kept."""
        if not self.is_sure and self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)

    @staticmethod
    def _swap(folder: Path) -> None:
        """Swap the runs. If the swap is interrupted at any point, another call completes it. The
        new log is moved first: until then, all other parts in the folder belong to the old run. The
        folder always has a log, because the log is the file that is locked."""
        ready, old = folder / READY, folder / OLD
        if (ready / LOG).exists():
            old.mkdir(exist_ok=True)
            for path in _parts(folder):
                path.rename(old / path.name)
            (ready / LOG).replace(folder / LOG)
        if ready.exists():
            for path in sorted(ready.iterdir()):
                path.rename(folder / path.name)
            ready.rmdir()
        sync(folder)
        shutil.rmtree(old, ignore_errors=True)


def _parts(folder: Path) -> List[Path]:
    """Return the files and folders that belong to the run in a folder, except its log."""
    checkpoints = Checkpoints(folder)
    names = [*WRITTEN_WHOLE, *ID_FILES]
    parts = [*(folder / name for name in names), *map(checkpoints.at, checkpoints.steps())]
    return [path for path in parts if path.exists()]


def _holds_run(folder: Path) -> bool:
    log = folder / LOG  # A log that was only created to be locked is empty.
    return bool(_parts(folder)) or (log.is_file() and log.stat().st_size > 0)
