"""Output of the command line: messages on stderr, tables and JSON on stdout or in a file.

Colour is used only on a terminal that supports it, and never if NO_COLOR is set.
"""

import codecs
import json
import os
import re
import sys
import unicodedata
from contextlib import suppress
from functools import partialmethod
from typing import Any, Optional, Sequence, TextIO

from ..errors import cut

# Sign, its replacement on terminals without that character, and the ANSI code of its colour.
_SIGNS = {
    "good": ("✔", "[+]", 32),
    "info": ("ℹ", "[i]", 34),
    "warn": ("⚠", "[!]", 33),
    "fail": ("✘", "[x]", 31),
}

# Maximum number of characters in a line of a message. No path is longer, but text given as a path
# may be.
_LONGEST_LINE = 5000

# Metrics that are counts: their value 1 is shown as a whole number.
_COUNTS = ("examples", "tokens")


def has_colour(stream: TextIO) -> bool:
    """Return whether to colour the output to a stream."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def coloured(text: str, code: int, stream: Optional[TextIO] = None) -> str:
    """Return a text in a colour, if the stream shows colours.

    code (int): ANSI code of the colour; 0 for none.
    stream (Optional[TextIO]): The stream; stdout if None.
    """
    return f"\x1b[{code}m{text}\x1b[0m" if code and has_colour(stream or sys.stdout) else text


def print_difference(line: str) -> None:
    """Print a line that begins with "+", "-" or a blank, in the colour of its sign."""
    print(coloured(line, {"+": 32, "-": 31}.get(line[:1], 0)))


def can_show(letters: str, stream: Optional[TextIO] = None) -> bool:
    """Return whether a stream can encode these characters.

    stream (Optional[TextIO]): The stream; stdout if None.
    """
    try:
        letters.encode((stream or sys.stdout).encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


class Messages:
    """Print messages to the user, each with a sign for its kind.

    stream (Optional[TextIO]): The stream; stderr if None.
    """

    def __init__(self, stream: Optional[TextIO] = None):
        self.stream = stream

    def _show(self, kind: str, text: str) -> None:
        stream = self.stream or sys.stderr
        sign, plain, code = _SIGNS[kind]
        sign = sign if can_show(sign, stream) else plain
        text = "\n".join(cut(line, _LONGEST_LINE) for line in text.split("\n"))
        with suppress(OSError):  # The terminal may be closed.
            stream.write(f"{coloured(sign, code, stream)} {text}\n")
            stream.flush()

    good = partialmethod(_show, "good")
    info = partialmethod(_show, "info")
    warn = partialmethod(_show, "warn")
    fail = partialmethod(_show, "fail")


messages = Messages()


def table(rows: Sequence[Sequence[str]], n_left: int = 1) -> str:
    """Format rows in columns, with a line under the header.

    rows (Sequence[Sequence[str]]): The header, then the rows.
    n_left (int): Number of columns, from the left, to align left; the others align right.
    """
    widths = [max(map(_width, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        cells = []
        for column, (cell, width) in enumerate(zip(row, widths)):
            space = " " * (width - _width(cell))
            cells.append(cell + space if column < n_left else space + cell)
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _width(text: str) -> int:
    """Return the number of columns that a text takes on a terminal, where East Asian characters
    take two."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    marks = sum(unicodedata.combining(letter) > 0 for letter in text)
    return len(text) + wide - marks


def counted(number: int, name: str) -> str:
    """Format a count with its noun: ``1 example``, ``1,200 examples``.

    number (int): The count.
    name (str): The noun in the singular; the plural is formed with an s.
    """
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def number_of(name: str, value: float) -> str:
    """Format a metric's value: counts as whole numbers, others with four decimals.

    name (str): Name of the metric, possibly after that of a split or a task.
    value (float): Value from a report, where counts are floats too.
    """
    is_count = name.replace("/", ".").rpartition(".")[2] in _COUNTS or abs(value) >= 2
    return f"{value:.0f}" if is_count and float(value).is_integer() else f"{value:.4f}"


def shorten(text: str, limit: int) -> str:
    """Put a text on one line, and cut it to ``limit`` characters; 0 for no limit."""
    text = text.replace("\n", "\\n").replace("\t", "\\t")
    return text if limit <= 0 or len(text) <= limit else text[: max(limit - 3, 1)] + "..."


def json_text(value: Any, indent: Optional[int] = 2) -> str:
    """Return a value as standard JSON, in which numbers that are not finite are null.

    value (Any): A JSON value; arrays in it become lists, and dataclasses objects.
    indent (Optional[int]): Number of spaces to indent; None for one line.
    """
    from ..loggers.row_file import finite

    def plain(value: Any) -> Any:
        if hasattr(value, "__dataclass_fields__"):
            return finite(vars(value))
        return value.tolist() if hasattr(value, "tolist") else str(value)

    return json.dumps(finite(value), indent=indent, ensure_ascii=False, default=plain)


def print_json(value: Any, indent: Optional[int] = 2) -> None:
    """Print a value on stdout. The arguments are those of ``json_text``."""
    print(for_stdout(json_text(value, indent)))


def for_stdout(text: str) -> str:
    """Make JSON text fit stdout: if its encoding is not UTF-8, escape characters beyond ASCII."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if codecs.lookup(encoding).name == "utf-8":
        return text
    return re.sub(r"[^\x00-\x7f]", lambda letter: json.dumps(letter[0])[1:-1], text)


def write_json(path: str, value: Any) -> None:
    """Write a value as JSON into a file, or to stdout if the path is "-"."""
    if path == "-":
        print_json(value)
    else:
        write_text(path, json_text(value), force=True)


def write_text(output: str, text: str, force: bool) -> None:
    """Write a text to a file, with a message, or to stdout if the path is "-".

    RAISES (OutputError): If the file exists and ``force`` is not set, or if it cannot be written.
    """
    if output == "-":
        sys.stdout.write(text)
        return
    from ..formats.output_file import open_output

    with open_output(output, force) as write_line:
        write_line(text.removesuffix("\n"))
    messages.good(f"Wrote {output}")
