"""Labelled texts, for instance utterances with intents, in JSONL, CSV or TSV."""

import csv
import hashlib
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ..errors import ConfigError, DataError, Problem
from ..messages import Episode, Message
from ..registry import registry
from .arguments import FileSource, Reader, candidate_file, file_sources
from .bookmark import Bookmark
from .reading import MAX_LINE, PathOrPaths, kind, nearest, read_json_lines, read_lines, short
from .teacher import Teacher

Row = Tuple[int, Dict[str, Any]]  # Line number, and field name to value.


@registry.teachers("thincdialog.LabelledText.v1")
def LabelledText(
    train: Optional[PathOrPaths] = None,
    dev: Optional[PathOrPaths] = None,
    test: Optional[PathOrPaths] = None,
    text_field: str = "text",
    label_field: str = "label",
    columns: Optional[List[str]] = None,
    dev_share: float = 0.0,
    dev_seed: int = 0,
    mutators: Optional[Union[List[Any], Dict[str, Any]]] = None,
    candidates: Optional[str] = None,
    streaming: bool = False,
) -> Teacher:
    """One text and its label (or a JSON list of labels) a line; the format is told by
    the suffix: .jsonl, .csv or .tsv, with .gz behind it or not. Other fields are ignored.

    train (Optional[Union[str, List[str]]]): File or files; plain or gzip'd.
    dev (Optional[Union[str, List[str]]]): The same for the split `dev`.
    test (Optional[Union[str, List[str]]]): The same for the split `test`.
    text_field (str): Name of the text's field or column.
    label_field (str): Name of the label's field or column.
    columns (Optional[List[str]]): Column names of CSV or TSV files that have no header.
    dev_share (float): Share of the training examples to hold out as split `dev`, each
        by a seeded draw, 0.0 to less than 1.0; only if no dev is given.
    dev_seed (int): Seed of that draw.
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one a line.
    streaming (bool): Read the files for every epoch instead of holding them.
    RAISES (ConfigError): If dev_share is out of range, or given beside dev.
    """
    if not 0.0 <= dev_share < 1.0:
        text = f"'dev_share' of thincdialog.LabelledText.v1 is {dev_share}"
        raise ConfigError([Problem("", text, "give 0.0 or more, less than 1.0")])
    if columns is not None and not {text_field, label_field} <= set(columns):
        text = f"'columns' of thincdialog.LabelledText.v1 is {columns}"
        raise ConfigError([Problem("", text, f"name '{text_field}' and '{label_field}' in it")])
    if dev_share and dev:
        text = "'dev_share' of thincdialog.LabelledText.v1 is given beside 'dev'"
        raise ConfigError([Problem("", text, "leave one of them out")])
    reader = partial(
        read_labelled_text, text_field=text_field, label_field=label_field, columns=columns
    )
    sources = file_sources(reader, train, dev, test)
    if dev_share and train:
        draw = partial(_is_held_out, share=dev_share, seed=dev_seed)
        sources["train"] = FileSource(partial(_read_part, reader, draw, False), train)
        sources["dev"] = FileSource(partial(_read_part, reader, draw, True), train)
    return Teacher(
        sources,
        candidates=candidate_file(candidates),
        mutators=mutators,
        streaming=streaming,
        single_turn=True,
    )


def read_labelled_text(
    path: str,
    text_field: str = "text",
    label_field: str = "label",
    columns: Optional[Sequence[str]] = None,
    keep_fields: bool = False,
    at: Optional[Bookmark] = None,
) -> Iterator[Episode]:
    """The examples of one file, each an episode of one turn.

    path (str): The file; its suffix tells the format.
    text_field (str): Name of the text's field or column.
    label_field (str): Name of the label's field or column.
    columns (Optional[Sequence[str]]): Column names of a file that has no header.
    keep_fields (bool): Take other fields along; a row's `id` becomes `source_id`.
    at (Optional[Bookmark]): Lies where to begin, and is moved along.
    RAISES (DataError): With the line, if a row is malformed or lacks a field.
    """
    at = at or Bookmark()
    is_empty = at.is_at_begin
    for number, row in _rows(path, columns, (text_field, label_field), at):
        at.before()
        is_empty = False
        text, label = row[text_field], row[label_field]
        if not isinstance(text, str):
            raise DataError(path, f"'{text_field}' is {kind(text)}, not a string", number)
        labels = label if isinstance(label, list) else [label]
        # Class numbers are common in JSON; true, false, fractions and null are mistakes.
        labels = [str(value) if type(value) is int else value for value in labels]
        if not all(isinstance(value, str) for value in labels):
            text = f"'{label_field}' is {kind(label)}; expected a string or a list of strings"
            raise DataError(path, text, number)
        if not labels or not all(labels):
            raise DataError(path, f"'{label_field}' is empty: give the example a label", number)
        message = Message(id=f"{number}/0", text=text, labels=labels)
        if keep_fields:
            for field in (name for name in row if name not in (text_field, label_field)):
                if field in ("text", "labels", "source_id"):
                    raise DataError(path, f"the field '{field}' is no text or label here", number)
                message["source_id" if field == "id" else field] = row[field]
        yield [message]
    if is_empty:
        raise DataError(path, "holds no examples")


def _rows(
    path: str, columns: Optional[Sequence[str]], fields: Sequence[str], at: Bookmark
) -> Iterator[Row]:
    suffix = Path(path.removesuffix(".gz")).suffix.lower()
    if suffix in (".csv", ".tsv"):
        return table_rows(path, suffix, columns, fields, at)
    if suffix in (".jsonl", ".json", ".ndjson"):
        return _json_rows(path, fields, at)
    known = ".jsonl, .csv or .tsv, each with .gz behind it or not"
    raise DataError(path, f"cannot tell the format by the suffix '{suffix}': expected {known}")


def _json_rows(path: str, fields: Sequence[str], at: Bookmark) -> Iterator[Row]:
    for number, row in read_json_lines(path, at):
        for field in fields:
            if field not in row:
                raise DataError(path, _missing(field, list(row), "field"), number)
        yield number, row


def table_rows(
    path: str,
    suffix: str,
    columns: Optional[Sequence[str]],
    fields: Sequence[str],
    at: Optional[Bookmark] = None,
) -> Iterator[Row]:
    """Line number and cells by column name of each row of a CSV or TSV file.

    path (str): The file.
    suffix (str): ".csv" or ".tsv".
    columns (Optional[Sequence[str]]): Names of the columns; in the first line if None.
    fields (Sequence[str]): Columns that must be there.
    at (Optional[Bookmark]): Where to begin; is told where each row begins and ends.
    RAISES (DataError): With the line, if a row is malformed.
    """
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    at = at or Bookmark()
    # Line ends go back on: a quoted CSV field may hold some.
    lines = (f"{line}\n" for _, line in read_lines(path, at))
    if suffix == ".csv":
        table = csv.reader(lines, strict=True)
    else:
        table = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    header = list(columns or at.columns or ())
    row_end = at.end
    try:
        for cells in table:
            # A row may have several lines.
            at.begin, row_end = row_end, at.end
            number = at.end[1]
            if not cells or cells == [""]:
                continue
            if not header:
                header = [cell.strip() for cell in cells]
                _check_header(header, fields, path, number)
                at.columns = header
            elif len(cells) != len(header):
                text = f"expected {len(header)} columns, found {len(cells)}"
                hint = "put a text with commas in double quotes" if suffix == ".csv" else (
                    "a text must hold no tab"
                )  # fmt: skip
                raise DataError(path, f"{text}: {hint}", number)
            else:
                yield number, dict(zip(header, cells))
    except csv.Error as error:
        raise DataError(path, f"not readable as {suffix[1:]}: {error}", at.end[1]) from None


def _check_header(header: Sequence[str], fields: Sequence[str], path: str, number: int) -> None:
    for field in fields:
        if field not in header:
            text = _missing(field, header, "column")
            hint = "set text_field and label_field, or 'columns' if the file has no header"
            raise DataError(path, f"{text}; {hint}", number)
        if header.count(field) > 1:
            raise DataError(path, f"{header.count(field)} columns are called '{field}'", number)


def _missing(field: str, names: Sequence[str], what: str) -> str:
    have = ", ".join(short(name, 30) for name in names[:10]) or "none"
    return f"the {what} '{field}' is missing{nearest(field, names)} (there is: {have})"


def _read_part(
    reader: Reader,
    draw: Callable[[str], bool],
    drawn: bool,
    path: str,
    at: Optional[Bookmark] = None,
) -> Iterator[Episode]:
    return (episode for episode in reader(path, at=at) if draw(episode[0]["id"]) is drawn)


def _is_held_out(name: str, share: float, seed: int) -> bool:
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64
