"""A teacher of labelled texts, such as utterances with intents, in JSONL, CSV or TSV."""

from functools import partial
from typing import List, Optional, Union

from ..errors import ConfigError, Problem
from ..formats.labelled_text import read_labelled_text
from ..formats.text_file import is_json_lines
from .arguments import FileOptions, Reader, check_delimiter
from .file_teacher import file_teacher, read_files
from .teacher import Teacher


@file_teacher("thincdialog.LabelledText.v1")
def LabelledText(
    options: FileOptions,
    text_field: str = "text",
    label_field: Union[str, List[str]] = "label",
    label_separator: Optional[str] = None,
    split_field: Optional[str] = None,
    columns: Optional[List[str]] = None,
    delimiter: Optional[str] = None,
) -> Teacher:
    """Read one text and its label (or a JSON list of labels) per line. The suffix determines
    the format: .jsonl, .csv or .tsv, optionally followed by .gz. Other fields are ignored.

    text_field (str): Name of the text's field or column.
    label_field (Union[str, List[str]]): Name of the label's field or column, or a list of several.
        In a list, each column holds labels, or 1, 0, true or false for whether the text has the
        label that is the column's name. Cells may be empty.
    label_separator (Optional[str]): Separator of several labels within a cell, such as "|"; None if
        a cell is one label.
    split_field (Optional[str]): Name of the field or column with the split of each row (train,
        training; dev, valid, validation, val; test), if one file has several splits. Name the same
        file as train, dev and test then.
    columns (Optional[List[str]]): Column names of CSV or TSV files that have no header.
    delimiter (Optional[str]): Separator between the cells of a CSV file, such as ";". If None, it
        is detected from the first line: a comma, semicolon, tab or bar.
    """
    check_delimiter(options.teacher, delimiter)
    if label_field == [] or label_separator == "":
        text = f"'label_field' or 'label_separator' of {options.teacher} is empty"
        raise ConfigError([Problem("", text, "name a column, or leave it out")])
    label_fields = [label_field] if isinstance(label_field, str) else label_field
    if columns is not None and not {text_field, *label_fields} <= set(columns):
        hint = f"name {' and '.join(map(repr, [text_field, *label_fields]))} in it"
        raise ConfigError([Problem("", f"'columns' of {options.teacher} is {columns}", hint)])

    def reader_of(split: str) -> Reader:
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

    return read_files(options, reader_of, is_json_lines, single_turn=True)
