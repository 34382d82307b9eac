"""Writes a text file that a command was asked for."""

import sys

from ..formats.output_file import open_output


def write_text(output: str, text: str, force: bool) -> None:
    """Write a text to a file, or to stdout if it is called "-".

    RAISES (OutputError): If the file is there and ``force`` is not set, or cannot be written.
    """
    if output == "-":
        sys.stdout.write(text)
        return
    with open_output(output, force) as write_line:
        write_line(text.removesuffix("\n"))
