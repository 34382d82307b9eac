"""Writes a text file that a command was asked for."""

import sys
from pathlib import Path

from ..errors import OutputError
from ..files.whole_file import whole_file


def write_text(output: str, text: str, force: bool) -> None:
    """Write a text to a file, or to stdout if it is called "-".

    RAISES (OutputError): If the file is there and ``force`` is not set, or cannot be written.
    """
    if output == "-":
        sys.stdout.write(text)
        return
    path = Path(output)
    if path.exists() and not force:
        raise OutputError(f"{output}  is there already. Choose another name, or add --force.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as beside:
            beside.write_text(text, encoding="utf8")
    except OSError as error:
        raise OutputError(f"{output}  cannot be written: {error.strerror}") from None
