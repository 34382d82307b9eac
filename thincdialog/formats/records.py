"""Records of JSON, JSON lines and tables, and what is found inside them."""

import json
from typing import Any, Iterator, NamedTuple, Optional, Sequence

from ..errors import DataError
from ..files.json_text import parse_json
from .bookmark import Bookmark
from .tables import NO_HEADER, read_table
from .text_file import check_surrogates, is_pipe, read_json_lines, read_text, suffix_of
from .wording import kind, nearest, short


class Located(NamedTuple):
    """A value and where it stands, for error messages.

    value (Any): From JSON.
    path (str): The file.
    line (Optional[int]): Its line, where a record is a line.
    name (str): The way to it from the record, or from the whole of the file.
    key (str): Of a record in an object, its name there.
    """

    value: Any
    path: str
    line: Optional[int] = None
    name: str = ""
    key: str = ""

    def error(self, text: str) -> DataError:
        """What is wrong with it."""
        return DataError(self.path, f"{self.name or 'the record'} {text}", self.line)

    def find(self, where: str, default: Any = ...) -> "Located":
        """The value at a place inside this one.

        where (str): Such as "history.-1", see ``CorpusLayout``; "" for this value itself.
        default (Any): What to take where there is nothing.
        RAISES (DataError): If there is nothing and no default.
        """
        found = self
        for step in where.split(".") if where else ():
            value = found.value
            if isinstance(value, dict) and step in value:
                found = found.inside(step, value[step])
            elif isinstance(value, list) and step.lstrip("-").isdecimal() and (
                -len(value) <= int(step) < len(value)
            ):  # fmt: skip
                found = found.inside(step, value[int(step)])
            elif default is not ...:
                return found._replace(value=default)
            else:
                raise found._lacks(step)
        return found

    def text(self) -> str:
        """The value, a string.

        RAISES (DataError): If it is none.
        """
        if not isinstance(self.value, str):
            raise self.error(f"is {kind(self.value)}, not a string")
        return self.value

    def items(self) -> Iterator["Located"]:
        """The elements of a list.

        RAISES (DataError): If it is none.
        """
        if not isinstance(self.value, list):
            raise self.error(f"is {kind(self.value)}, not a list")
        return (self.inside(number, value) for number, value in enumerate(self.value))

    def inside(self, step: object, value: Any, key: str = "") -> "Located":
        """A value that stands in this one, one step away."""
        name = f"{self.name}.{step}" if self.name else str(step)
        return Located(value, self.path, self.line, name, key)

    def _lacks(self, step: str) -> DataError:
        value = self.value
        if isinstance(value, dict):
            names = [str(name) for name in value]
            have = ", ".join(short(name, 30) for name in names[:8]) or "nothing"
            hint = f"; {NO_HEADER}" if suffix_of(self.path) in (".csv", ".tsv") else ""
            return self.error(f"has no '{step}'{nearest(step, names)} (there is: {have}){hint}")
        if isinstance(value, list):
            return self.error(f"has no element {step}: it is a list of {len(value)}")
        return self.error(f"is {kind(value)}, so there is no '{step}' in it")


def read_records(
    path: str,
    records: str = "",
    at: Optional[Bookmark] = None,
    columns: Optional[Sequence[str]] = None,
    delimiter: Optional[str] = None,
) -> Iterator[Located]:
    """Every record of a file.

    Lines of .jsonl, .ndjson, .csv and .tsv, and of pipes, are read one by one. A .json file is
    read as a whole, unless it turns out to be lines as well.

    path (str): The file, plain or gzip'd.
    records (str): Where in a JSON file the list or object of records is.
    at (Optional[Bookmark]): Of lines, where to begin; is told where each begins and ends.
    columns (Optional[Sequence[str]]): Column names of a table that has no header.
    delimiter (Optional[str]): Of a table; told by its first line if None.
    RAISES (DataError): If it cannot be read, or there are no records.
    """
    suffix = suffix_of(path)
    if suffix in (".csv", ".tsv"):
        rows = read_table(path, at, columns, delimiter=delimiter)
    else:
        # A mark within it was made by lines; a pipe can be read once only.
        are_lines = suffix in (".jsonl", ".ndjson") or is_pipe(path)
        if not are_lines and (at is None or at.is_at_begin):
            whole = _read_whole(path, at)
            if whole is not None:
                found = Located(whole, path).find(records)
                if isinstance(found.value, dict):
                    yield from (found.inside(key, one, key) for key, one in found.value.items())
                else:
                    yield from found.items()
                return
        if records:
            text = f"holds JSON lines: the layout's 'records' ({records}) has no meaning in it"
            raise DataError(path, text)
        rows = read_json_lines(path, at)
    for number, row in rows:
        yield Located(row, path, number)


def _read_whole(path: str, at: Optional[Bookmark]) -> Any:
    """The value of a JSON file, or None if it is JSON lines."""
    content = read_text(path, at)
    try:
        value = parse_json(content)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and content.lstrip()[:1] == "{":
            return None
        text = f"not valid JSON at column {error.colno}: {error.msg}"
        raise DataError(path, text, error.lineno) from None
    except ValueError as error:
        raise DataError(path, f"not readable as JSON: {error}") from None
    if "\\u" in content:
        check_surrogates(value, path)
    return value
