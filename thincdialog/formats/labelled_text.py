"""Read and write labelled texts, such as utterances with intents, in JSONL, CSV or TSV."""

import json
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ..errors import DataError
from ..messages import Episode, Message
from .context import NEEDS_LABEL, Bookmark, tolerance
from .split_column import of_split
from .tables import missing, read_table
from .text_file import File, is_json_lines, read_json_lines, read_lines, suffix_of
from .wording import kind, short

# Possible cells of a column that is named after a label, and whether the text has that label.
MARKS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
EMPTY: Sequence[Any] = (None, "", [])


def read_labelled_text(
    path: File,
    text_field: str = "text",
    label_field: Union[str, Sequence[str]] = "label",
    columns: Optional[Sequence[str]] = None,
    keep_fields: bool = False,
    delimiter: Optional[str] = None,
    at: Optional[Bookmark] = None,
    label_separator: Optional[str] = None,
    split_field: Optional[str] = None,
    split: str = "train",
) -> Iterator[Episode]:
    """Yield the examples of one file, each an episode of one turn.

    path (File): The file; its suffix determines the format.
    text_field (str): Name of the text's field or column.
    label_field (Union[str, Sequence[str]]): Name of the label's field or column, or of several:
        each of several columns holds labels, or 1, 0, true or false for whether the text has the
        label that is the column's name. Cells may be empty.
    columns (Optional[Sequence[str]]): Column names of a file that has no header.
    keep_fields (bool): Whether to keep other fields; a row's `id` becomes `source_id`.
    delimiter (Optional[str]): Delimiter of the cells, see ``read_table``.
    at (Optional[Bookmark]): Position to begin at; moved along.
    label_separator (Optional[str]): Separator of the labels within a cell or string; None if each
        cell or string is one label.
    split_field (Optional[str]): Field or column with the name of a row's split; None if all rows
        belong to the split.
    split (str): The split whose rows are read.
    RAISES (DataError): With the line, if a row is malformed or lacks a field.
    """
    at = at or Bookmark()
    is_empty, at.counts.unit = at.is_at_begin, "examples"
    label_fields = [label_field] if isinstance(label_field, str) else list(label_field)
    fields = _Fields(text_field, label_fields, label_separator, at)
    suffix = suffix_of(path)
    if suffix in (".csv", ".tsv"):
        wanted = (text_field,) if tolerance().unlabelled else fields.own
        rows = read_table(path, at, columns, wanted, delimiter)
    elif is_json_lines(path):
        rows = read_json_lines(path, at)
    else:
        next(read_lines(path), None)  # Raises the right error if the file is not text.
        known = ".jsonl, .csv or .tsv, each with or without .gz"
        raise DataError(path, f"has the unknown suffix '{suffix}': expected {known}")
    if split_field is not None:
        rows = of_split(rows, split, lambda row: fields.value(row[1], split_field), path, at)

    def made(numbered: Tuple[int, Dict[str, Any]]) -> Message:
        number, row = numbered
        message = fields.message(f"{number}/0", row)
        if keep_fields:
            fields.add_others(message, row)
        return message

    for message in at.try_each(made, rows):
        at.before()
        is_empty = False
        yield [message]
    if is_empty:
        raise DataError(path, "holds no examples")


class _Fields:
    """Take the text and the labels from rows.

    text_field (str): Name of the text's field.
    label_fields (List[str]): Names of the labels' fields.
    separator (Optional[str]): Separator of the labels within a value.
    at (Bookmark): Position of the row that was read last.
    """

    def __init__(
        self, text_field: str, label_fields: List[str], separator: Optional[str], at: Bookmark
    ):
        self.own = (text_field, *label_fields)
        self.text_field, self.label_fields, self.separator = text_field, label_fields, separator
        self.at, self.is_one = at, len(label_fields) == 1
        self.first_cells: Dict[str, Any] = {}  # First value of each field that is not empty.

    def value(self, row: Dict[str, Any], field: str) -> Any:
        """Return the value of a field.

        RAISES (DataError): If the row lacks the field.
        """
        if field not in row:
            raise self.at.error(missing(field, row, "field"))
        return row[field]

    def message(self, name: str, row: Dict[str, Any]) -> Message:
        """Return the message with the text and the labels of a row."""
        text, label = row.get(self.text_field), row.get(self.label_fields[0])
        if self.is_one and self.separator is None and label and type(text) is type(label) is str:
            return Message(id=name, text=text, labels=[label])
        allowed = tolerance()
        # An empty list or cell says that a text has no label, if texts may have none.
        unknown = EMPTY[:1] if allowed.empty_labels else EMPTY
        is_labelled = not allowed.unlabelled or any(
            row.get(field) not in unknown for field in self.label_fields
        )
        text = self.value(row, self.text_field)
        cells = [(field, self.value(row, field)) for field in self.label_fields if is_labelled]
        if not isinstance(text, str):
            raise self.at.error(f"'{self.text_field}' is {kind(text)}, not a string")
        if not is_labelled:
            return Message(id=name, text=text)
        labels = [label for field, cell in cells for label in self._labels(field, cell)]
        if not all(labels) or not (labels or allowed.empty_labels):
            fields = "', '".join(self.label_fields)
            raise self.at.error(f"'{fields}' is empty: {NEEDS_LABEL}")
        for field, cell in cells if not self.is_one else ():
            first = cell if cell in EMPTY else self.first_cells.setdefault(field, cell)
            if (_is_marked(cell) is None) != (_is_marked(first) is None):
                text = f"'{field}' is {short(cell)} here and {short(first)} in an earlier row"
                wanted = "1, 0, true or false (or nothing) in all rows, or labels in all"
                raise self.at.error(f"{text}: expected {wanted}")
        return Message(id=name, text=text, labels=list(dict.fromkeys(labels)))

    def _labels(self, field: str, value: Any) -> List[str]:
        """Return the labels in a field. If several fields have labels, the value may be empty, or
        a mark."""
        if not self.is_one and (mark := _is_marked(value)) is not None:
            return [field] * mark
        if value == "" or (value is None and not self.is_one):
            return [] if tolerance().empty_labels or not self.is_one else [""]
        labels = value if isinstance(value, list) else [value]
        # Class numbers are common in JSON; true, false, fractions and null are mistakes.
        labels = [str(label) if type(label) is int else label for label in labels]
        if not all(isinstance(label, str) for label in labels):
            what = "expected a string or a list of strings"
            raise self.at.error(f"'{field}' is {kind(value)}; {what}")
        if self.separator is None:
            return labels
        parts = (part.strip() for label in labels for part in label.split(self.separator))
        return [part for part in parts if part]

    def add_others(self, message: Message, row: Dict[str, Any]) -> None:
        """Add the other fields of a row to its message."""
        for field in (name for name in row if name not in self.own):
            if field in ("text", "labels", "source_id"):
                text = f"the field '{field}' has a fixed meaning, but is not the text or label"
                raise self.at.error(f"{text} here: rename it")
            message["source_id" if field == "id" else field] = row[field]


def _is_marked(cell: Any) -> Optional[bool]:
    """Return whether the text has the label that the cell's column is named after; None if the cell
    is a label."""
    return MARKS.get(str(cell).lower())


def labelled_json_line(episode: Episode, name: str) -> List[str]:
    """Return an episode as one line of JSON that holds a labelled text, with all other fields.

    RAISES (ValueError): If the episode has several turns, an empty label, or a field "label".
    """
    if len(episode) > 1:
        text = f"the format holds one turn, but there are {len(episode)}"
        raise ValueError(f"{text}; --drop history separates them")
    (message,) = episode
    labels = message["labels"]
    if not labels or not all(labels):
        raise ValueError("its label is empty")
    if "label" in message:
        raise ValueError("the field 'label' has another meaning there; --drop label")
    row = {"id": message["source_id"]} if "source_id" in message else {}
    row.update(text=message["text"], label=labels[0] if len(labels) == 1 else labels)
    others = [name for name in message if name not in ("id", "source_id", "text", "labels")]
    row.update((name, message[name]) for name in others)
    return [json.dumps(row, ensure_ascii=False)]
