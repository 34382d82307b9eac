"""Format rows with their answers as lines of text: a table stays a table, and input in any other
format becomes JSON lines."""

import csv
import io
import json
from typing import Any, Dict, Iterable, Iterator, Sequence

from ..errors import DataError
from ..files.json_file import as_json

_IN_TSV = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def answer_lines(
    rows: Iterable[Dict[str, Any]],
    form: str,
    names: Sequence[str],
    delimiter: str = ",",
    has_header: bool = True,
) -> Iterator[str]:
    """Yield rows as lines of CSV, TSV or JSON lines.

    form (str): "csv", "tsv" or "jsonl".
    names (Sequence[str]): Names of the columns of a table.
    delimiter (str): Delimiter of the cells in CSV.
    has_header (bool): Whether a table begins with the names of its columns.
    RAISES (DataError): If a row of a table has a field that is not a column.
    """
    if form == "jsonl":
        yield from map(as_json, rows)
        return

    def line(cells: Sequence[str]) -> str:
        if form == "tsv":
            return "\t".join(cell.translate(_IN_TSV) for cell in cells)
        text = io.StringIO()
        # With this line end, the writer quotes every cell that contains CR or LF.
        csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerow(cells)
        return text.getvalue().removesuffix("\r\n")

    if has_header:
        yield line(names)
    for row in rows:
        new = next((name for name in row if name not in names), None)
        if new is not None:
            text = f"have a field '{new}' that the first row lacks, so the table has no column"
            raise DataError("rows", f"{text} for it: write JSON lines (.jsonl)")
        yield line([_cell(row.get(name)) for name in names])


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
