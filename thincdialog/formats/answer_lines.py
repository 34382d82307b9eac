"""Rows with their answers as lines: a table stays a table, all else becomes JSON lines."""

import csv
import io
import json
from typing import Any, Dict, Iterator, Sequence

from ..files.json_file import as_json

_IN_TSV = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


class AnswerLines:
    """Writes rows as lines.

    form (str): "csv", "tsv" or "jsonl".
    delimiter (str): Of a CSV file.
    has_header (bool): Whether a table begins with the names of its columns.
    """

    def __init__(self, form: str, delimiter: str = ",", has_header: bool = True):
        self.form, self.delimiter, self.has_header = form, delimiter, has_header

    def __call__(self, row: Dict[str, Any]) -> Iterator[str]:
        """The line of a row, before it that of the header if it is the first."""
        if self.form == "jsonl":
            yield as_json(row)
            return
        if self.has_header:
            self.has_header = False
            yield self._line(list(row))
        yield self._line([_cell(value) for value in row.values()])

    def _line(self, cells: Sequence[str]) -> str:
        if self.form == "tsv":
            return "\t".join(cell.translate(_IN_TSV) for cell in cells)
        text = io.StringIO()
        # Cells with signs of its line end are put in quotes.
        csv.writer(text, delimiter=self.delimiter, lineterminator="\r\n").writerow(cells)
        return text.getvalue().removesuffix("\r\n")


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
