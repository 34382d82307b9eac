"""Read rows of CSV and TSV files."""

import csv
from collections import deque
from functools import partial
from typing import Any, Deque, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from .context import Bookmark
from .text_file import LONE_CR, MAX_LINE, File, Line, read_lines, suffix_of
from .wording import nearest, short

Row = Tuple[int, Dict[str, Any]]  # Line number, and field name to value.

# Possible delimiters of a CSV file; if several are equally likely, the first is used.
DELIMITERS = (",", ";", "\t", "|")

NO_HEADER = 'if the file has no header, name its columns, such as columns = ["text", "label"]'
WITH_FLAGS = "see --text-field; if the file has no header, name its columns: --columns id,text"


def read_table(
    path: File,
    at: Bookmark,
    columns: Optional[Sequence[str]] = None,
    fields: Sequence[str] = (),
    delimiter: Optional[str] = None,
    may_have_header: bool = False,
) -> Iterator[Row]:
    """Yield the line number of each row and its cells by column name.

    path (File): The file; .csv or .tsv.
    at (Bookmark): Position to begin at; updated with the beginning and end of each row, the column
        names and the delimiter.
    columns (Optional[Sequence[str]]): Names of the columns; None if they are in the first line.
    fields (Sequence[str]): Columns that must exist.
    delimiter (Optional[str]): Delimiter of the cells. If None, a tab in .tsv, if it fits the first
        line; otherwise the one of ``DELIMITERS`` that fits it best, see ``find_delimiter``.
    may_have_header (bool): Whether ``columns`` are used only if the first line lacks ``fields``.
    RAISES (DataError): With the line, if a row is malformed.
    """
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    lines = _Lines(path, at)
    if may_have_header and columns:
        is_header = _fitting(lines.first, fields, (delimiter or ",", *DELIMITERS))
        columns = None if is_header else columns
    delimiter = delimiter or at.delimiter
    is_tsv = suffix_of(path) == ".tsv" and delimiter in (None, "\t")
    if is_tsv and fields and not columns and not at.columns:
        fitting = _fitting(lines.first, fields)
        is_tsv = "\t" in fitting or not fitting
    if is_tsv:
        kind, hint, at.delimiter = "tsv", "a text must contain no tab or line break", None
        read = partial(csv.reader, lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        delimiter = at.delimiter = delimiter or find_delimiter(lines.first, columns, fields)
        sign = "commas" if delimiter == "," else repr(delimiter)
        kind, hint = "csv", f"put a text with {sign} in double quotes"
        read = partial(csv.reader, lines, delimiter=delimiter, strict=True)
    header = list(columns or at.columns or ())
    table, row_end = read(), at.end
    while True:
        error = ""
        lines.row.clear()
        try:
            cells = next(table)
        except StopIteration:
            return
        except csv.Error as problem:
            first = row_end + 1
            where = f": see the quote at {path}:{first}" if at.end > first else ""
            where = f": {LONE_CR}" if "new-line" in str(problem) else f": {problem}{where}"
            error, cells = f"not readable as {kind}{where}", []
        # A row may have several lines.
        at.begin, row_end = row_end, at.end
        is_sep = at.end == 1 and cells == ["sep=", ""]  # Written by Excel before the header.
        # In a table of one column, a quoted empty cell is a row, unlike a blank line.
        is_blank = not cells or (cells == [""] and len(header) != 1)
        if not error and (is_blank or is_sep):
            continue
        if not error and header and len(cells) != len(header):
            error = f"expected {len(header)} columns, found {len(cells)}: {hint}"
        if error:
            at.refuse(at.error(error))
            # A surplus quote may have joined good rows to this one.
            row_end = lines.go_back()
            table = read()
        elif not header:
            header = [cell.strip() for cell in cells]
            _check_header(header, fields, at)
            at.columns = header
        elif cells[1:] and cells == header:
            text = "repeats the header, as if files were joined"
            if at.has_flags:
                at.refuse(at.error(f"{text}: delete this line"))
            note = f"line {at.end:,} {text}; such rows are left out"
            at.counts.note = at.counts.note or note
        else:
            yield at.end, dict(zip(header, cells))


class _Lines:
    """Iterate over the lines of a table, with line ends, because a quoted cell may hold them. The
    lines of a row that was misread can be read again.

    path (File): The file.
    at (Bookmark): Position to begin at; updated with the end of each line.

    first (str): The first line that is not blank; iteration begins with the first line of all.
    row (List[Line]): Lines of the current row, if they may have to be read again.
    """

    def __init__(self, path: File, at: Bookmark):
        begin, self.at, self.first = at.end, at, ""
        self.row: List[Line] = []
        # Lines that were read and are to be yielded next, and those that were not read yet.
        self.ahead: Deque[Line] = deque()
        self.rest = read_lines(path, at)
        for line in self.rest:
            self.ahead.append(line)
            self.first = line[1]
            if self.first.strip():
                break
        at.end = begin

    def __iter__(self) -> Iterator[str]:
        while line := self.ahead.popleft() if self.ahead else next(self.rest, None):
            self.at.end, text = line
            if self.at.bad is not None:
                self.row.append(line)
            yield f"{text}\n"

    def go_back(self) -> int:
        """Read the lines of the row again, except its first.

        RETURNS (int): Number of lines before the second line of the row.
        """
        self.ahead.extendleft(reversed(self.row[1:]))
        if self.row:
            self.at.end = self.row[0][0]
        return self.at.end


def find_delimiter(
    line: str, columns: Optional[Sequence[str]] = None, fields: Sequence[str] = ()
) -> str:
    """Find the delimiter of a CSV file: one that gives as many cells as there are column names, or
    gives the required columns; otherwise the one that gives the most cells.

    line (str): The first line.
    columns (Optional[Sequence[str]]): Names of the columns, if they are not in the first line.
    fields (Sequence[str]): Columns that must exist.
    """
    n_cells = {sign: len(_cells(line, sign)) for sign in DELIMITERS}
    if columns:
        fitting = [sign for sign in DELIMITERS if n_cells[sign] == len(columns)]
    else:
        fitting = _fitting(line, fields) if fields else []
    return fitting[0] if fitting else max(DELIMITERS, key=n_cells.__getitem__)


def _fitting(line: str, fields: Sequence[str], delimiters: Sequence[str] = DELIMITERS) -> List[str]:
    """Return the delimiters that give all the required columns."""
    return [sign for sign in delimiters if {*fields} <= {*_cells(line, sign)}]


def _cells(line: str, delimiter: str) -> List[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _check_header(header: Sequence[str], fields: Sequence[str], at: Bookmark) -> None:
    for field in fields or filter(None, header):
        if field not in header:
            hint = f"set text_field and label_field; {NO_HEADER}"
            hint = WITH_FLAGS if at.has_flags else hint
            raise at.error(f"{missing(field, header, 'column')}; {hint}")
        if header.count(field) > 1:
            raise at.error(f"{header.count(field)} columns are called '{field}'")


def missing(field: str, names: Iterable[str], what: str) -> str:
    """Return a message that a field is missing, with a similar name and the existing fields.

    field (str): Name of the missing field.
    names (Iterable[str]): Names of the existing fields.
    what (str): The word for a field, such as "column".
    """
    names = list(names)
    have = ", ".join(short(name, 30) for name in names[:10]) or "none"
    return f"the {what} '{field}' is missing{nearest(field, names)} (found: {have})"
