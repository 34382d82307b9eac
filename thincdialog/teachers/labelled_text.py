"""Labelled texts, for instance utterances with intents, in JSONL, CSV or TSV."""

from functools import partial
from typing import Any, Dict, List, Literal, Optional, Union

from ..errors import ConfigError, Problem
from ..formats.labelled_text import read_labelled_text
from ..formats.text_file import PathOrPaths, is_json_lines
from ..registry import registry
from .arguments import CandidateFile, FileOptions, check_delimiter, file_sources
from .teacher import Teacher

NAME = "thincdialog.LabelledText.v1"


@registry.teachers("thincdialog.LabelledText.v1")
def LabelledText(
    train: Optional[PathOrPaths] = None,
    dev: Optional[PathOrPaths] = None,
    test: Optional[PathOrPaths] = None,
    text_field: str = "text",
    label_field: Union[str, List[str]] = "label",
    label_separator: Optional[str] = None,
    split_field: Optional[str] = None,
    columns: Optional[List[str]] = None,
    delimiter: Optional[str] = None,
    dev_share: float = 0.0,
    test_share: float = 0.0,
    dev_seed: int = 0,
    on_bad_data: Literal["error", "skip"] = "error",
    max_bad_share: float = 0.05,
    encoding: Optional[str] = None,
    mutators: Optional[Union[List[Any], Dict[str, Any]]] = None,
    candidates: Optional[str] = None,
    streaming: bool = False,
) -> Teacher:
    """Read one text and its label (or a JSON list of labels) per line. The suffix determines
    the format: .jsonl, .csv or .tsv, optionally followed by .gz. Other fields are ignored.

    train (Optional[Union[str, List[str]]]): File or files; plain or gzip'd.
    dev (Optional[Union[str, List[str]]]): The same for the split `dev`.
    test (Optional[Union[str, List[str]]]): The same for the split `test`.
    text_field (str): Name of the text's field or column.
    label_field (Union[str, List[str]]): Name of the label's field or column, or a list of several.
        In a list, each column holds labels, or 1, 0, true or false for whether the text has the
        label that is the column's name. Cells may be empty.
    label_separator (Optional[str]): Separates several labels within a cell, such as "|"; null if
        a cell is one label.
    split_field (Optional[str]): Name of the field or column with the split of each row
        (train, training; dev, valid, validation, val; test), if one file has several splits: give
        the same file as train, dev and test.
    columns (Optional[List[str]]): Column names of CSV or TSV files that have no header.
    delimiter (Optional[str]): Separator between the cells of a CSV file, such as ";"; if None,
        the comma, semicolon, tab or bar that is found in its first line.
    dev_share (float): Share of the training examples to hold out as split `dev`, 0.0
        to less than 1.0; only if no dev is given. An example is drawn by a hash of its
        line's number and dev_seed.
    test_share (float): The same for the split `test`.
    dev_seed (int): Seed of that draw.
    on_bad_data (str): Whether unreadable data is an "error", or is left out and listed
        ("skip").
    max_bad_share (float): Share of a file's examples that may be left out, 0.0 to 1.0;
        more is an error.
    encoding (Optional[str]): Encoding of the files, such as "cp1252"; if None, UTF-8, or UTF-16
        if a byte order mark indicates it.
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one per line.
    streaming (bool): Read the files for every epoch instead of holding them in memory.
    RAISES (ConfigError): If a share is out of range, or given together with its split's files.
    """
    check_delimiter(NAME, delimiter)
    if label_field == [] or label_separator == "":
        text = f"'label_field' or 'label_separator' of {NAME} is empty"
        raise ConfigError([Problem("", text, "name a column, or leave it out")])
    label_fields = [label_field] if isinstance(label_field, str) else label_field
    if columns is not None and not {text_field, *label_fields} <= set(columns):
        hint = f"name {' and '.join(map(repr, [text_field, *label_fields]))} in it"
        raise ConfigError([Problem("", f"'columns' of {NAME} is {columns}", hint)])
    options = FileOptions(
        NAME, dev_share, test_share, dev_seed, on_bad_data, max_bad_share, encoding
    )

    def reader_of(split: str) -> Any:
        return partial(
            read_labelled_text,
            text_field=text_field,
            label_field=label_field,
            columns=columns,
            delimiter=delimiter,
            label_separator=label_separator,
            split_field=split_field,
            split=split,
        )

    return Teacher(
        file_sources(options, reader_of, is_json_lines, train=train, dev=dev, test=test),
        candidates=CandidateFile(candidates) if candidates else None,
        mutators=mutators,
        streaming=streaming,
        single_turn=True,
    )
