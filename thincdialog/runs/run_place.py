"""Where a run is written. One that replaces another grows in a folder of its own, inside the
run's, until it is sure; then it takes the place of the old one.

    .thincdialog-new     the new run grows here; of a killed process, it goes
    .thincdialog-ready   the same, from the moment on when it is sure; what is left of the swap
                         is done by whoever trains in the folder next
    .thincdialog-old     the old run, on its way out

The run's folder stays where it is, as it may be a mount, somebody's working directory, or hold
files of others. Its parts (models, checkpoints, files) change by renaming alone.
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
    """Where a run is written to now.

    folder (Optional[Path]): Of the run; None if nothing is saved.
    path (Optional[Path]): Where to write: the folder, or one in it while another run is there.
    """

    def __init__(self, folder: Optional[Path]):
        self.folder = self.path = folder

    @property
    def is_sure(self) -> bool:
        """Whether the run has its place; no other one is there, or it has given way."""
        return self.path == self.folder

    def mend(self) -> None:
        """Undo or finish what a process that was killed left half done.

        RAISES (OutputError): If that cannot be.
        """
        if self.folder is None:
            return
        with writing(self.folder, ELSEWHERE, CANNOT):
            ready = self.folder / READY
            if ready.is_dir() and not ready.is_symlink():
                self._swap(self.folder)
            for name in (NEW, OLD):
                shutil.rmtree(self.folder / name, ignore_errors=True)
            Checkpoints(self.folder).mend(*WRITTEN_WHOLE, AGENT)

    def begin_anew(self) -> None:
        """A new run begins: beside the one that is there, if there is one.

        RAISES (OutputError): If nothing can be written.
        """
        if self.folder is None or not _holds_run(self.folder):
            return
        with writing(self.folder, ELSEWHERE, CANNOT):
            self.path = self.folder / NEW
            self.path.mkdir()

    def take_over(self) -> None:
        """The run is sure: it takes the place of the one before, wholly or not at all.

        RAISES (OutputError): If it cannot.
        """
        if self.is_sure or self.folder is None or self.path is None:
            return
        with writing(self.folder, "The old run is there still.", CANNOT):
            sync(self.path)
            self.path.rename(self.folder / READY)
            self.path = self.folder
        with writing(self.folder, "Train once more to mend it.", CANNOT):
            try:
                self._swap(self.folder)
            except KeyboardInterrupt:
                self._swap(self.folder)
                raise

    def drop(self) -> None:
        """The run has ended before it was sure: the one before stays as it is."""
        if not self.is_sure and self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)

    @staticmethod
    def _swap(folder: Path) -> None:
        """Each moment is one to go on from. The log comes first, so that as long as it is not
        in its place everything else there is old. It is never gone: it holds the lock."""
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
    """What belongs to the run in a folder, but for its log."""
    checkpoints = Checkpoints(folder)
    names = [*WRITTEN_WHOLE, *ID_FILES]
    parts = [*(folder / name for name in names), *map(checkpoints.at, checkpoints.steps())]
    return [path for path in parts if path.exists()]


def _holds_run(folder: Path) -> bool:
    log = folder / LOG  # A file that is made to be locked is empty.
    return bool(_parts(folder)) or (log.is_file() and log.stat().st_size > 0)
