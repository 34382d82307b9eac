"""Results as JSON, which any reader takes: numbers that are not finite become null."""

import json
from typing import Any, Optional

from .output import messages
from .writing import write_text


def print_json(value: Any, indent: Optional[int] = 2) -> None:
    """Print a value.

    indent (Optional[int]): None for one line.
    """
    from ..loggers.row_file import finite

    print(json.dumps(finite(value), indent=indent, ensure_ascii=False, default=_plain))


def write_json(path: str, value: Any) -> None:
    """Write a value into a file, or to stdout if it is called "-"."""
    from ..loggers.row_file import finite

    write_text(path, json.dumps(finite(value), indent=2) + "\n", force=True)
    if path != "-":
        messages.good(f"Wrote {path}")


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
