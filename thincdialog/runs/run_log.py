"""The rows of a run in its own folder, whatever logger it has: for plots and tables."""

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, TextIO, Tuple

from ..errors import OutputError
from ..files.real_path import real_path
from ..files.whole_file import writing
from ..loggers.logger import Finalize, LoggedRun, LogStep
from ..loggers.row_file import RowFile, read_rows
from .scores_file import remove_scores

LOG = "log.jsonl"
ELSEWHERE, CANNOT = "Choose another folder with --output.", "cannot be"
RUNNING = (
    "belongs to a training run that is still going on. Wait for its end, or choose another "
    "folder with --output."
)
LOCK_TRIES, LOCK_SECONDS = 5, 0.05


class RunLog:
    """Writes ``log.jsonl``, and holds a lock on it until it is closed.

    folder (Path): The run's folder.
    RAISES (OutputError): If the file cannot be written, or another run is writing it.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.rows = self._in_folder = _locked(folder)

    def begin(self, resume_step: Optional[int] = None, place: Optional[Path] = None) -> None:
        """A run begins, or goes on.

        resume_step (Optional[int]): Step at which it goes on: later rows are dropped;
            None for a new run, which begins with an empty file.
        place (Optional[Path]): Where the run is written, if not yet in its folder: both are
            locked then.
        RAISES (OutputError): If the file cannot be written.
        """
        if place is not None:
            self.rows = _locked(place)
        place = place or self.folder
        with writing(place / LOG, ELSEWHERE, CANNOT):
            self.rows.drop_after(-1 if resume_step is None else resume_step)
            remove_scores(place)

    def log_step(self, info: Optional[Dict[str, Any]]) -> None:
        """Write the row of an evaluation; it outlives a crash, even of the machine."""
        if info is not None:
            self.rows.add(info)
            self.rows.sync()

    def setup(self, run: LoggedRun, stdout: TextIO, stderr: TextIO) -> Tuple[LogStep, Finalize]:
        """The log as one of the loggers; it stays open, as scores come after the last row."""
        return self.log_step, lambda: None

    def close(self) -> None:
        """Give the folder free."""
        for rows in dict.fromkeys((self.rows, self._in_folder)):
            with suppress(OSError):  # Rows that the disk has no room for: told when it happened.
                rows.close()


def _locked(folder: Path) -> RowFile:
    """The file of rows in a folder, for this process alone.

    RAISES (OutputError): If it cannot be written, or another process has it.
    """
    with writing(folder / LOG, ELSEWHERE, CANNOT):
        rows = RowFile(folder / LOG)
        # Before it was locked, another run may have put its own in the place of the old one's.
        if _lock(rows) and os.path.samestat(os.fstat(rows.file.fileno()), os.stat(rows.path)):
            return rows
    rows.file.close()
    raise OutputError(f"{folder}  {RUNNING}")


def _lock(rows: RowFile) -> bool:
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(rows.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:  # Maybe only is_running, which looks for a moment.
            time.sleep(LOCK_SECONDS)
        except OSError:  # A file system without locks.
            return True
    return False


@contextmanager
def run_log(folder: Optional[Path]) -> Iterator[List[RunLog]]:
    """The log of a run, and so the folder for it alone, until its scores are written.

    folder (Optional[Path]): The run's folder; None if nothing is saved.
    YIELDS (List[RunLog]): The log; empty if there is no folder.
    """
    if folder is None:
        yield []
        return
    log = RunLog(folder)
    try:
        yield [log]
    finally:
        log.close()


def is_running(folder: Path) -> bool:
    """Whether a process is training in a folder now, on a file system that can tell."""
    path = folder / LOG
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def read_log(path: Path) -> List[Dict[str, Any]]:
    """The rows of a run so far; none if it has written none.

    path (Path): The run's folder, or a file of rows, which may lie anywhere.
    RAISES (OSError): If the file cannot be read.
    """
    file = path / LOG if path.is_dir() else real_path(path)
    return read_rows(file) if os.path.lexists(file) else []
