"""Files of rows, with one JSON object per line, which a crash does not damage."""

import json
import math
import os
import sys
from pathlib import Path
from typing import Any, Dict, List

from ..files.json_text import parse_json
from ..files.plain_file import read_plain, real_path


class RowFile:
    """Append rows to a file; a row is in the file when ``add`` returns.

    path (Path): Path of the file; missing folders are created.
    RAISES (OSError): If the file cannot be written; the methods raise this error too.
    """

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        # Rows that do not fit on the disk stay in the buffer, and are written with the next row.
        self.file = path.open("ab", buffering=1 << 20)
        self._before = b""
        if path.is_file() and path.stat().st_size:  # A pipe has nothing to read.
            with path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                self._before = b"\n" if file.read() != b"\n" else b""

    def add(self, row: Dict[str, Any]) -> None:
        """Write a row. A number that is not finite becomes null."""
        # Python's own writer preserves floats exactly.
        text = json.dumps(finite(row), allow_nan=False, default=float)
        self.file.write(self._before + text.encode("utf8") + b"\n")
        self._before = b""
        self.file.flush()

    def drop_after(self, step: int) -> None:
        """Drop the last rows whose ``step`` is larger, and an incomplete last row."""
        lines = read_plain(real_path(self.path)).splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            lines.pop()
        while lines and _parsed(lines[-1]).get("step", math.inf) > step:
            lines.pop()
        os.truncate(self.path, sum(map(len, lines)))
        self._before = b""

    def sync(self) -> None:
        """Wait until the rows are safe from a power failure."""
        os.fsync(self.file.fileno())

    def close(self) -> None:
        """Close the file, after a last attempt to write rows that did not fit on the disk."""
        self.file.close()


def _parsed(line: bytes) -> Dict[str, Any]:
    try:
        row = parse_json(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def read_rows(path: Path) -> List[Dict[str, Any]]:
    """Return the rows of a file, without invalid lines (such as incomplete ones after a crash).

    RAISES (OSError): If the file cannot be read.
    """
    rows = map(_parsed, read_plain(path).splitlines())
    return [row for row in rows if isinstance(row.get("step"), (int, float))]


def count_lost(path: Path) -> int:
    """Count the lines that ``read_rows`` leaves out because they are not JSON objects.

    RAISES (OSError): If the file cannot be read.
    """
    return sum(not _parsed(line) for line in read_plain(path).splitlines())


def is_number(value: Any) -> bool:
    """Return whether a value is a number that can be plotted: finite, and not too large."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= sys.float_info.max


def finite(value: Any) -> Any:
    """Prepare a value for JSON: replace numbers that are not finite by None."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
