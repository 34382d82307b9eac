"""Rows as lines of JSON in a file, for plots and for programs."""

import math
from pathlib import Path
from typing import Any, Dict, Optional, TextIO

import srsly

from ..errors import OutputError
from ..registry import registry
from .logger import Logger, Setup


@registry.loggers("thincdialog.JSONL.v1")
def JSONL(path: str) -> Setup:
    """One line of JSON for each evaluation, with all that is known of it.

    Lines are added to what the file holds: a run begins where `step` does not grow.
    A number that is not finite becomes null.

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
            path.parent.mkdir(parents=True, exist_ok=True)
            self.file = path.open("a", encoding="utf8")
        except OSError as error:
            raise OutputError(
                f"{path}: thincdialog.JSONL.v1 cannot write it ({error.strerror}). "
                "Give it another 'path'."
            ) from error

    def row(self, info: Dict[str, Any]) -> None:
        """Write a line; it is in the file when this returns."""
        self.file.write(srsly.json_dumps(_finite(info)) + "\n")
        self.file.flush()

    def finish(self) -> None:
        """Close the file."""
        self.file.close()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
