"""Read records of JSON, YAML, tables and text, and find values inside them."""

from pathlib import Path
from typing import Any, Iterator, NamedTuple, Optional, Sequence, Tuple

from ..errors import DataError
from .arrow_file import is_arrow, read_arrow
from .context import Bookmark
from .layout_file import CorpusLayout
from .split_column import of_split
from .tables import NO_HEADER, read_table
from .text_file import is_pipe, read_json_lines, suffix_of
from .text_records import read_text_records
from .value_file import read_value
from .wording import kind, nearest, short


class Located(NamedTuple):
    """Hold a value and its location, for error messages.

    value (Any): A JSON value.
    path (str): The file.
    line (Optional[int]): Line of the record, if a record is a line.
    steps (Tuple[object, ...]): The names and indexes that lead to the value in the record or in the
        whole file.
    key (str): Name of a record in its object; for a line of text, the name of its block.
    record (Optional[Located]): The record that a layout calls `$record`.
    """

    value: Any
    path: str
    line: Optional[int] = None
    steps: Tuple[object, ...] = ()
    key: str = ""
    record: Optional["Located"] = None

    def error(self, text: str) -> DataError:
        """Return an error about the value."""
        name = ".".join(map(str, self.steps)) or "the record"
        return DataError(self.path, f"{name} {text}", self.line)

    def get(self, where: str, default: Any = ...) -> Any:
        """Return the value at a place inside this one. The arguments are those of ``find``, which
        is slower, and also returns the location."""
        value = self.value
        if not where:
            return value
        if where.isidentifier():
            if isinstance(value, dict) and where in value:
                return value[where]
            if default is not ...:
                return default
        for place in where.split(" | ") if " | " in where else ():
            found = self.get(place, None)
            if found is not None:
                return found
        return self.find(where, default).value

    def find(self, where: str, default: Any = ...) -> "Located":
        """Find the value at a place inside this one.

        where (str): Such as "history.-1", see ``CorpusLayout``; "" for this value itself.
        default (Any): The value to return if the place does not exist.
        RAISES (DataError): If the place does not exist and there is no default.
        """
        found, places = self, where.split(" | ")
        for place in places if len(places) > 1 else ():
            found = self.find(place, None)
            if found.value is not None:
                return found
        found, steps = self, places[0].split(".") if places[0] else []
        if self.record is not None and steps[:1] == ["$record"]:
            found, steps = self.record, steps[1:]
        for number, step in enumerate(steps):
            value = found.value
            if step == "*" and isinstance(value, list):
                rest = ".".join(steps[number + 1 :])
                parts = [part.get(rest, default) for part in found.items()]
                return found.inside(".".join(steps[number:]), parts)
            try:
                if step == "$file":
                    inner: Any = Path(found.path).name
                elif step == "$key" and found.key:
                    inner = found.key
                else:
                    is_index = isinstance(value, list) and step.lstrip("-").isdecimal()
                    inner = value[int(step) if is_index else step]
            except (LookupError, TypeError, ValueError):
                if default is ...:
                    raise found._missing_error(step) from None
                return found._replace(value=default)
            found = found.inside(step, inner)
        return found

    def text(self, where: str = "") -> str:
        """Return the string at a place inside this value.

        RAISES (DataError): If the place does not exist, or its value is not a string.
        """
        value = self.get(where)
        if isinstance(value, str):
            return value
        texts = value.items() if isinstance(value, dict) else ()
        name = next((name for name, one in reversed(texts) if isinstance(one, str)), "")
        hint = f": in a layout, '*.{name}' takes the '{name}' of each element" if name else ""
        raise self.find(where).error(f"is {kind(value)}, not a string{hint}")

    def items(self) -> Iterator["Located"]:
        """Return an iterator over the elements of the value, which must be a list.

        RAISES (DataError): If the value is not a list.
        """
        if not isinstance(self.value, list):
            raise self.error(f"is {kind(self.value)}, not a list")
        return (self.inside(number, value) for number, value in enumerate(self.value))

    def inside(self, step: object, value: Any, key: str = "") -> "Located":
        """Return a value one step inside this one."""
        return Located(value, self.path, self.line, (*self.steps, step), key, self.record)

    def _missing_error(self, step: str) -> DataError:
        value = self.value
        if isinstance(value, dict):
            names = [str(name) for name in value]
            have = ", ".join(short(name, 30) for name in names[:8]) or "nothing"
            hint = f"; {NO_HEADER}" if suffix_of(self.path) in (".csv", ".tsv") else ""
            return self.error(f"has no '{step}'{nearest(step, names)} (found: {have}){hint}")
        if isinstance(value, list):
            return self.error(f"has no element {step}: it is a list of {len(value)}")
        return self.error(f"is {kind(value)}, so it has no '{step}'")


def read_records(
    path: str,
    layout: CorpusLayout,
    at: Bookmark,
    split: Optional[str] = None,
    columns: Optional[Sequence[str]] = None,
    delimiter: Optional[str] = None,
) -> Iterator[Located]:
    """Yield every record of a file.

    Lines of .jsonl, .ndjson, .csv and .tsv, and of pipes, are read one by one. A .json or YAML
    file is read as a whole, unless it turns out to be JSON lines as well.

    path (str): The file, plain or compressed.
    layout (CorpusLayout): Where the records are, and how lines of text become records.
    at (Bookmark): Position to begin at in a file that is read by lines; updated with the beginning
        and end of each record.
    split (Optional[str]): The split, if one file holds several. None for all records; if each split
        has a place in the layout, None for the test split, or the last one if there is no test.
    columns (Optional[Sequence[str]]): Column names of a table that has no header.
    delimiter (Optional[str]): Delimiter of a table; None to detect it from the first line.
    RAISES (DataError): If the file cannot be read, or has no records.
    """
    found = _located_records(path, layout, at, split, columns, delimiter)
    if layout.split and split:
        found = of_split(found, split, lambda record: record.get(layout.split), path, at)
    yield from found


def _located_records(
    path: str,
    layout: CorpusLayout,
    at: Bookmark,
    split: Optional[str],
    columns: Optional[Sequence[str]],
    delimiter: Optional[str],
) -> Iterator[Located]:
    where = layout.records
    if isinstance(where, dict):
        split = split or ("test" if "test" in where else list(where)[-1])
        if split not in where:
            text = f"the layout has no 'records' for '{split}' (found: {', '.join(where)})"
            raise DataError(path, text)
        where = where[split]
    suffix = suffix_of(path)
    if layout.is_of_lines:
        lines = read_text_records(path, layout, at)
        return (Located(row, path, number, key=key) for number, row, key in lines)
    if is_arrow(path):
        rows = enumerate(read_arrow(path, as_json=True))
        return (Located(row, path, steps=(f"row {number}",)) for number, row in rows)
    if suffix in (".csv", ".tsv"):
        table = read_table(path, at, columns, delimiter=delimiter)
        return (Located(row, path, number) for number, row in table)
    # A position within the file comes from reading lines; a pipe can be read only once.
    are_lines = suffix in (".jsonl", ".ndjson") or is_pipe(path) or not at.is_at_begin
    whole = at.whole
    if whole is None and not are_lines:
        whole = read_value(path, at)
    if whole is not None:
        found = Located(whole, path).find(where)
        inner = layout.turns or layout.each or layout.examples
        if not isinstance(found.value, dict):
            return found.items()
        is_record = inner and found.get(inner, None) is not None
        elements = (found.inside(key, one, key) for key, one in found.value.items())
        return iter([found]) if is_record else elements
    if "" not in where.split(" | "):
        text = f"holds JSON lines, but the layout's 'records' ({where}) is for a single value"
        raise DataError(path, text)
    return (Located(row, path, number) for number, row in read_json_lines(path, at))
