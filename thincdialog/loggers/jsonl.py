"""Write rows as JSON lines to a file, for plots and programs."""

from os.path import isfile, samefile
from pathlib import Path
from typing import Any, Dict, List, Optional, TextIO, Tuple

from ..errors import OutputError
from ..registry import registry
from .logger import Finalize, LoggedRun, LogStep, Setup
from .row_file import RowFile
from .values import leaves

# Sections that may name input files.
_READ = ("tasks.", "tokenizer.", "agent.")


def _is_among(path: str, values: List[Any]) -> bool:
    files = (value for value in values if isinstance(value, str) and isfile(value))
    return isfile(path) and any(samefile(path, file) for file in files)


@registry.loggers("thincdialog.JSONL.v1")
def JSONL(path: str) -> Setup:
    """Write each row of the log, such as that of an evaluation, as one line of JSON.

    Lines are appended to the file; a new run begins where `step` does not increase. A number that
    is not finite becomes null. Every run also writes these lines to log.jsonl in its folder.

    path (str): Path of the file; missing folders are created.
    """

    def setup(run: LoggedRun, stdout: TextIO, stderr: TextIO) -> Tuple[LogStep, Finalize]:
        for name, value in leaves(run.config):
            values = value if isinstance(value, list) else [value]
            if name.startswith(_READ) and _is_among(path, values):
                raise OutputError(
                    f"{path}: thincdialog.JSONL.v1 would add rows to the file of '{name}'. Give it "
                    "another 'path'."
                )
        try:
            rows = RowFile(Path(path))
        except OSError as error:
            raise OutputError(
                f"{path}: thincdialog.JSONL.v1 cannot write it ({error.strerror}). "
                "Give it another 'path'."
            ) from error
        if run.first_step:  # A resumed run writes later rows again.
            rows.drop_after(run.first_step)

        def log_step(info: Optional[Dict[str, Any]]) -> None:
            if info is not None:
                rows.add(info)

        return log_step, rows.close

    return setup
