"""Rows of CSV and TSV files."""

import csv
from typing import Any, Dict, Iterable, Iterator, Optional, Sequence, Tuple

from .bookmark import Bookmark
from .text_file import MAX_LINE, File, read_lines, suffix_of
from .wording import nearest, short

Row = Tuple[int, Dict[str, Any]]  # Line number, and field name to value.


def read_table(
    path: File,
    at: Optional[Bookmark] = None,
    columns: Optional[Sequence[str]] = None,
    fields: Sequence[str] = (),
) -> Iterator[Row]:
    """Line number and cells by column name of each row.

    path (File): The file; .csv or .tsv.
    at (Optional[Bookmark]): Where to begin; is told where each row begins and ends.
    columns (Optional[Sequence[str]]): Names of the columns; in the first line if None.
    fields (Sequence[str]): Columns that must be there.
    RAISES (DataError): With the line, if a row is malformed.
    """
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    at = at or Bookmark()
    # Line ends go back on: a quoted CSV field may hold some.
    lines = (f"{line}\n" for _, line in read_lines(path, at))
    if suffix_of(path) == ".csv":
        kind, hint = "csv", "put a text with commas in double quotes"
        table = csv.reader(lines, strict=True)
    else:
        kind, hint = "tsv", "a text must hold no tab"
        table = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    header = list(columns or at.columns or ())
    row_end = at.end
    try:
        for cells in table:
            # A row may have several lines.
            at.begin, row_end = row_end, at.end
            if not cells or cells == [""]:
                continue
            if not header:
                header = [cell.strip() for cell in cells]
                _check_header(header, fields, at)
                at.columns = header
            elif len(cells) != len(header):
                raise at.error(f"expected {len(header)} columns, found {len(cells)}: {hint}")
            else:
                yield at.end[1], dict(zip(header, cells))
    except csv.Error as error:
        raise at.error(f"not readable as {kind}: {error}") from None


def _check_header(header: Sequence[str], fields: Sequence[str], at: Bookmark) -> None:
    for field in fields:
        if field not in header:
            hint = "set text_field and label_field, or 'columns' if the file has no header"
            raise at.error(f"{missing(field, header, 'column')}; {hint}")
        if header.count(field) > 1:
            raise at.error(f"{header.count(field)} columns are called '{field}'")


def missing(field: str, names: Iterable[str], what: str) -> str:
    """That a row lacks a field, what may be meant, and which ones there are.

    field (str): The field's name.
    names (Iterable[str]): Those that there are.
    what (str): What a field is called.
    """
    names = list(names)
    have = ", ".join(short(name, 30) for name in names[:10]) or "none"
    return f"the {what} '{field}' is missing{nearest(field, names)} (there is: {have})"
