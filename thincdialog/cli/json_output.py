"""Results as standard JSON: numbers that are not finite become null."""

import codecs
import json
import re
import sys
from typing import Any, Optional

from .output import messages
from .writing import write_text


def print_json(value: Any, indent: Optional[int] = 2) -> None:
    """Print a value as JSON.

    indent (Optional[int]): Number of spaces to indent; None for one line.
    """
    from ..loggers.row_file import finite

    text = json.dumps(finite(value), indent=indent, ensure_ascii=False, default=_plain)
    print(for_stdout(text))


def for_stdout(text: str) -> str:
    """Make JSON text fit stdout: if its encoding is not UTF-8, escape characters beyond ASCII."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if codecs.lookup(encoding).name == "utf-8":
        return text
    return re.sub(r"[^\x00-\x7f]", lambda letter: json.dumps(letter[0])[1:-1], text)


def write_json(path: str, value: Any) -> None:
    """Write a value into a file, or to stdout if the path is "-"."""
    from ..loggers.row_file import finite

    write_text(path, json.dumps(finite(value), indent=2) + "\n", force=True)
    if path != "-":
        messages.good(f"Wrote {path}")


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
