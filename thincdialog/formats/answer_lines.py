"""Format rows with their answers as lines of text: a table stays a table, and input in any other
format becomes JSON lines."""

import csv
import io
import json
from typing import Any, Dict, Iterator, List, Sequence

from ..errors import DataError
from ..files.json_file import as_json

_IN_TSV = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


class AnswerLines:
    """Format rows as lines of CSV, TSV or JSON lines.

    form (str): "csv", "tsv" or "jsonl".
    delimiter (str): Delimiter of the cells in CSV.
    has_header (bool): Whether a table begins with the names of its columns.
    """

    def __init__(self, form: str, delimiter: str = ",", has_header: bool = True):
        self.form, self.delimiter, self.has_header = form, delimiter, has_header
        self.names: List[str] = []

    def __call__(self, row: Dict[str, Any]) -> Iterator[str]:
        """Yield the line of a row, after the header line if it is the first row of a table.

        RAISES (DataError): If a row of a table has a field that the first row does not have.
        """
        if self.form == "jsonl":
            yield as_json(row)
            return
        yield from self.header(list(row))
        new = next((name for name in row if name not in self.names), None)
        if new is not None:
            text = f"have a field '{new}' which the first row has not, so the table has no column"
            raise DataError("rows", f"{text} for it: write JSON lines (.jsonl)")
        yield self._line([_cell(row.get(name)) for name in self.names])

    def header(self, names: List[str]) -> Iterator[str]:
        """Yield the header line of a table, at the first call and only if the table has one."""
        if not self.names:
            self.names = names
            if self.has_header:
                yield self._line(names)

    def _line(self, cells: Sequence[str]) -> str:
        if self.form == "tsv":
            return "\t".join(cell.translate(_IN_TSV) for cell in cells)
        text = io.StringIO()
        # With this line end, the writer quotes every cell that contains CR or LF.
        csv.writer(text, delimiter=self.delimiter, lineterminator="\r\n").writerow(cells)
        return text.getvalue().removesuffix("\r\n")


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
