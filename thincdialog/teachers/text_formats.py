"""Teachers of the text formats in ``formats``, which differ in the reader of a file."""

from functools import partial
from typing import List, Optional, Union

from ..errors import ConfigError, Problem
from ..formats.conversations import read_conversations
from ..formats.formats import Reader
from ..formats.labelled_text import read_labelled_text
from ..formats.numbered_text import read_numbered_text
from ..formats.parlai_text import read_parlai_text
from ..formats.text_file import is_json_lines
from .file_teacher import FileOptions, check_delimiter, file_teacher, read_files
from .teacher import Teacher


@file_teacher("thincdialog.Conversations.v1")
def Conversations(options: FileOptions, label_speaker: str = "second") -> Teacher:
    """Read one conversation per line: `{"id": ..., "turns": [{"speaker": ..., "text": ...}]}`,
    or ParlAI's `{"dialog": [[{"id": ..., "text": ...}, ...], ...]}`.

    Consecutive turns of one speaker become one, joined by a line end; likewise the
    turns between two turns of a named label speaker. If the label side opens the
    conversation, its first turn answers `__SILENCE__` (see
    `thincdialog.WithoutOpenings.v1`). Turns of ParlAI's speaker `context` are left out.

    label_speaker (str): Speaker whose turns are the labels: "second" (every second turn),
        "first" (the others), "both" (two episodes per conversation), or the name of a
        speaker, who then answers all the others. A conversation without such a turn is left
        out and counted; a file in which the speaker does not occur is an error.
    """
    reader = partial(read_conversations, label_speaker=label_speaker)
    # With "both", every turn is a label once, so the labels hold every text.
    text_fields = ("labels",) if label_speaker == "both" else ("text", "labels")
    return read_files(options, lambda _: reader, lambda _: True, text_fields=text_fields)


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
        raise ConfigError([Problem("", text, "name a column, or leave out the setting")])
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


@file_teacher("thincdialog.ParlAIText.v1")
def ParlAIText(options: FileOptions) -> Teacher:
    """Read dialogues in ParlAI's text format, for instance
    `text:How are you?<TAB>labels:fine|well<TAB>episode_done:True`.

    Lists are split at `|`; `\\t`, `\\n` and `__PIPE__` in a value mean a tab, a
    line end and a bar. An episode ends at `episode_done:True` or with the file; empty
    lines are ignored. The reader is stricter than ParlAI: `episode_done:False` is false, and a
    malformed field is an error. The file's `id`, which need not be unique, becomes
    `source_id`. Fields that ParlAI does not define stay texts.
    """
    return read_files(options, lambda _: read_parlai_text)


@file_teacher("thincdialog.NumberedText.v1")
def NumberedText(options: FileOptions, supporting: bool = True) -> Teacher:
    """Read lines `number text[<TAB>answers[<TAB>third[<TAB>candidates]]]`, such as
    `3 Where is Mary?<TAB>bathroom<TAB>1`.

    A number that is not larger than the previous one begins an episode. A line without an
    answer is a statement: it is put before the next question, joined by a line end. Statements
    after the last question are left out. Answers and candidates are split at `|`;
    `\\n` means a line end.

    supporting (bool): Whether the third column holds numbers of supporting lines (bAbI; kept as
        `supporting`) instead of a reward (fbdialog; the rewards of statements are added to the
        reward of the next question). If candidates follow, the third column is always a reward.
    """
    reader = partial(read_numbered_text, supporting=supporting)
    return read_files(options, lambda _: reader)
