"""Rows as lines of JSON in a file, for plots and for programs."""

from pathlib import Path
from typing import Any, Dict, Optional, TextIO, Tuple

from ..errors import OutputError
from ..registry import registry
from .logger import Finalize, LoggedRun, LogStep, Setup
from .row_file import RowFile


@registry.loggers("thincdialog.JSONL.v1")
def JSONL(path: str) -> Setup:
    """One line of JSON for each evaluation, with all that is known of it.

    Lines are added to what the file holds: a run begins where `step` does not grow. A number
    that is not finite becomes null. Every run writes the same into log.jsonl of its folder.

    path (str): The file; missing folders are made.
    """

    def setup(run: LoggedRun, stdout: TextIO, stderr: TextIO) -> Tuple[LogStep, Finalize]:
        try:
            rows = RowFile(Path(path))
        except OSError as error:
            raise OutputError(
                f"{path}: thincdialog.JSONL.v1 cannot write it ({error.strerror}). "
                "Give it another 'path'."
            ) from error
        if run.first_step:  # A resumed run will write later rows once more.
            rows.drop_after(run.first_step)

        def log_step(info: Optional[Dict[str, Any]]) -> None:
            if info is not None:
                rows.add(info)

        return log_step, rows.close

    return setup
