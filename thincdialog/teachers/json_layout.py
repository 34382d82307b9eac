"""A teacher of data in any layout, which a short file describes."""

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, List, Mapping, Optional

from ..files.json_file import write_json
from ..formats.json_layout import read_layout_file
from ..formats.layout_file import (
    CorpusLayout,
    SystemTurns,
    find_layout_file,
    layout_place,
    read_layout,
    shipped_layouts,
)
from .file_teacher import FileOptions, check_delimiter, file_teacher, read_files
from .teacher import Teacher


@file_teacher("thincdialog.JSONLayout.v1")
def JSONLayout(
    options: FileOptions,
    layout: str,
    label_speaker: Optional[str] = None,
    system_turns: SystemTurns = "context",
    columns: Optional[List[str]] = None,
    delimiter: Optional[str] = None,
) -> Teacher:
    """Read data of any form: JSON, JSON lines, YAML, CSV, TSV, Parquet, or lines of text.

    A layout describes the fields of texts and labels. Write your own as a short YAML or JSON file
    (`CorpusLayout` in thincdialog/formats/layout_file.py documents its keys), or use one of these:

    - conversations with models, and instructions: `messages`, `sharegpt`, `gemini`, `chatml`,
      `alpaca`, `dolly`, `prompt-completion`
    - exports of chats: `whatsapp`, `telegram`, `messenger`, `discord`, `slack`
    - conversations as text or rows: `speaker-lines`, `tabs`, `dailydialog-text`, `rows`
    - corpora of conversations: `blended-skill-talk`, `chatterbot`, `convokit`, `dailydialog`,
      `empathetic`, `metalwoz`, `multiwoz21`, `personachat`, `sgd`, `taskmaster`, `topicalchat`
    - texts with intents: `labelled`, `intents`, `rasa`, `rasa-json`, `dialogflow`, `fasttext`,
      `iob`, `conll`, `clinc`, `snips`

    A JSON file that is not JSON lines is in memory while it is read, even if it is streamed, and a
    run that is resumed reads the file from its beginning.

    layout (str): Name of a bundled layout, or path of a .yml or .json file.
    label_speaker (Optional[str]): In conversations, the speaker whose turns are the labels, see
        `thincdialog.Conversations.v1`; None for the layout's label speaker.
    system_turns (str): Use of a system's turns at the start of a conversation: "context"
        (turns before the first text, which agents read, and the field `system`), "field"
        (only the field `system` of each message) or "drop".
    columns (Optional[List[str]]): Column names of CSV or TSV files that have no header.
    delimiter (Optional[str]): Separator between the cells of a CSV file, such as ";". If None, it
        is detected from the first line: a comma, semicolon, tab or bar.
    """
    path = find_layout_file(layout)
    found = read_layout(path)
    check_delimiter(options.teacher, delimiter)
    reader = partial(
        read_layout_file,
        layout=found,
        label_speaker=label_speaker,
        columns=columns,
        delimiter=delimiter,
        system_turns=system_turns,
    )
    both = found.is_conversation and (label_speaker or found.label_speaker) == "both"
    text_fields = ["labels"] if both else ["text", "labels"]
    if system_turns == "context":
        text_fields.append("system")
    made = Teacher if layout in shipped_layouts() else partial(_LayoutTeacher, layout, found)
    return read_files(
        replace(options, layout_file=str(path)),
        lambda split: partial(reader, split=split),
        made=made,
        single_turn=not found.is_conversation and not found.examples,
        text_fields=text_fields,
    )


class _LayoutTeacher(Teacher):
    """Save a custom layout in the folder of a model, so that the model can read files in the same
    layout later.

    name (str): Name of the layout in the config.
    layout (CorpusLayout): The layout.
    """

    def __init__(self, name: str, layout: CorpusLayout, sources: Mapping[str, Any], **more: Any):
        super().__init__(sources, **more)
        self.layout_name, self.layout = name, layout

    def to_disk(self, folder: Path) -> None:
        place = layout_place(folder, self.layout_name)
        place.parent.mkdir(exist_ok=True)
        values = asdict(self.layout).items()
        write_json(place, {key: value for key, value in values if value is not None})
