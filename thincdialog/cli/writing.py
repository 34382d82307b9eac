"""Writes a text file that a command was asked for."""

import sys
import uuid
from pathlib import Path

from ..errors import OutputError


def write_text(output: str, text: str, force: bool) -> None:
    """Write a text to a file, or to stdout if it is called "-".

    RAISES (OutputError): If the file is there already and ``force`` is not set, or if
        it cannot be written.
    """
    if output == "-":
        sys.stdout.write(text)
        return
    path = Path(output)
    if path.exists() and not force:
        raise OutputError(f"{output}  is there already. Choose another name, or add --force.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, text)
    except OSError as error:
        raise OutputError(f"{output}  cannot be written: {error.strerror}") from None


def replace_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all; what is no plain file is written to.

    RAISES (OSError): If it cannot be written; an old file stays as it was.
    """
    if path.exists() and not path.is_file():  # Such as /dev/stdout.
        path.write_text(text, encoding="utf8")
        return
    target = path.resolve()  # A link stays a link.
    beside = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    try:
        beside.write_text(text, encoding="utf8")
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
