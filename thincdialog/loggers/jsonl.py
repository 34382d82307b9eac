"""Rows as lines of JSON in a file, for plots and for programs."""

from pathlib import Path
from typing import Any, Dict, Optional, TextIO

from ..errors import OutputError
from ..registry import registry
from .logger import Logger, Setup, Start
from .row_file import RowFile


@registry.loggers("thincdialog.JSONL.v1")
def JSONL(path: str) -> Setup:
    """One line of JSON for each evaluation, with all that is known of it.

    Lines are added to what the file holds: a run begins where `step` does not grow.
    A number that is not finite becomes null. Every run writes the same lines into
    log.jsonl of its own folder; this logger is for one more file elsewhere.

    path (str): The file; missing folders are made.
    """

    def setup(stdout: TextIO, stderr: TextIO, total_steps: Optional[float]) -> Logger:
        return JSONLLogger(Path(path))

    return setup


class JSONLLogger(Logger):
    """See ``JSONL``.

    path (Path): The file.
    RAISES (OutputError): If it cannot be written.
    """

    def __init__(self, path: Path):
        try:
            self.rows = RowFile(path)
        except OSError as error:
            raise OutputError(
                f"{path}: thincdialog.JSONL.v1 cannot write it ({error.strerror}). "
                "Give it another 'path'."
            ) from error

    def start(self, start: Start) -> None:
        """Drop what a resumed run will write once more."""
        if start.step:
            self.rows.drop_after(start.step)

    def row(self, info: Dict[str, Any]) -> None:
        """Write a line; it is in the file when this returns."""
        self.rows.add(info)

    def finish(self) -> None:
        """Close the file."""
        self.rows.close()
