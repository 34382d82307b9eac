"""The log of a run in its folder, for plots and tables; written in addition to any logger."""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, Optional, TextIO, Tuple

from ..errors import OutputError
from ..files.plain_file import real_path
from ..files.whole_file import writing
from ..loggers.logger import Finalize, LoggedRun, LogStep
from ..loggers.row_file import RowFile, read_rows
from .scores_file import SCORES

LOG = "log.jsonl"
OTHER_FOLDER, CANNOT_BE = "Choose another folder with --output.", "cannot be"
RUNNING = (
    "belongs to a training run that is still in progress. Wait until it ends, or choose another "
    "folder with --output."
)
LOCK_TRIES, LOCK_SECONDS = 5, 0.05


class RunLog:
    """Write ``log.jsonl``, and lock it, and so the run's folder, in a block.

    folder (Path): The run's folder.
    RAISES (OutputError): If the file cannot be written, or if another run is writing it.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        with writing(folder / LOG, OTHER_FOLDER, CANNOT_BE):
            self.rows = RowFile(folder / LOG)
            if not _lock(self.rows):
                self.rows.file.close()
                raise OutputError(f"{folder}  {RUNNING}")

    def begin(self, resume_step: Optional[int] = None) -> None:
        """Begin or resume a run.

        resume_step (Optional[int]): Step from which the run resumes; rows of later steps are
            deleted. None for a new run, which begins with an empty file.
        RAISES (OutputError): If the file cannot be written.
        """
        with writing(self.folder / LOG, OTHER_FOLDER, CANNOT_BE):
            self.rows.drop_after(-1 if resume_step is None else resume_step)
            (self.folder / SCORES).unlink(missing_ok=True)  # Those of the run before it resumed.

    def log_step(self, info: Optional[Dict[str, Any]]) -> None:
        """Write the row of an evaluation and sync it to disk, so that it survives a crash of the
        machine."""
        if info is not None:
            self.rows.add(info)
            self.rows.sync()

    def setup(self, run: LoggedRun, stdout: TextIO, stderr: TextIO) -> Tuple[LogStep, Finalize]:
        """Return the functions of a logger. The second one does not close the log, because scores
        are written after the last row."""
        return self.log_step, lambda: None

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(self, *error: object) -> None:
        """Close the log, which unlocks the folder. A row that did not fit on the disk is dropped,
        because the log may be that of the old run again."""
        with suppress(OSError):
            self.rows.file.close()


def _lock(rows: RowFile) -> bool:
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(rows.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:  # Maybe only ``is_running``, which holds a lock for a moment.
            time.sleep(LOCK_SECONDS)
        except OSError:  # The file system has no locks.
            return True
    return False


def is_running(folder: Path) -> bool:
    """Return whether a process is training in a folder now; False if the file system has no
    locks."""
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
    """Read the rows of a run so far; none if there is no log.

    path (Path): The run's folder, or a file of rows in any folder.
    RAISES (OSError): If the file cannot be read.
    """
    file = path / LOG if path.is_dir() else real_path(path)
    return read_rows(file) if os.path.lexists(file) else []
