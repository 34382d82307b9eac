"""Writes a text file that a command was asked for."""

import sys
from typing import Iterable, Optional

from ..formats.output_file import check_output_file, open_output


def check_outputs(paths: Iterable[Optional[str]], force: bool, reads: Iterable[str] = ()) -> None:
    """See, before the work begins, that the files of a command may be written.

    paths (Iterable[Optional[str]]): None if nobody asked for it, "-" for stdout.
    force (bool): Whether files that are there may be replaced.
    reads (Iterable[str]): Files that are read: never replaced.
    RAISES (OutputError): If one is there and must not be replaced.
    """
    for path in paths:
        if path not in (None, "-"):
            check_output_file(str(path), force, reads)


def write_text(output: str, text: str, force: bool) -> None:
    """Write a text to a file, or to stdout if it is called "-".

    RAISES (OutputError): If the file is there and ``force`` is not set, or cannot be written.
    """
    if output == "-":
        sys.stdout.write(text)
        return
    with open_output(output, force) as write_line:
        write_line(text.removesuffix("\n"))
