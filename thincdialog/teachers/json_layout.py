"""Data of any layout, described in a few lines."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Dict, List, Literal, Optional, Tuple, Union

from ..files.json_file import write_json
from ..formats.json_layout import SystemTurns, read_layout_file
from ..formats.layout_file import (
    CorpusLayout,
    find_layout_file,
    layout_place,
    read_layout,
    shipped_layouts,
)
from ..formats.text_file import PathOrPaths
from ..registry import registry
from .arguments import CandidateFile, FileOptions, check_delimiter, file_sources
from .teacher import Teacher

NAME = "thincdialog.JSONLayout.v1"


@registry.teachers("thincdialog.JSONLayout.v1")
def JSONLayout(
    layout: str,
    train: Optional[PathOrPaths] = None,
    dev: Optional[PathOrPaths] = None,
    test: Optional[PathOrPaths] = None,
    label_speaker: Optional[str] = None,
    system_turns: SystemTurns = "context",
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

    layout (str): Name of a bundled layout, or path of a .yml or .json file.
    train (Optional[Union[str, List[str]]]): File or files; plain or gzip'd.
    dev (Optional[Union[str, List[str]]]): The same for the split `dev`.
    test (Optional[Union[str, List[str]]]): The same for the split `test`.
    label_speaker (Optional[str]): In conversations, the speaker whose turns are the labels, see
        `thincdialog.Conversations.v1`; None for the layout's value.
    system_turns (str): Use of a system's turns at the start of a conversation: "context"
        (turns before the first text, which agents read, and the field `system`), "field"
        (only the field `system` of each message) or "drop".
    columns (Optional[List[str]]): Column names of CSV or TSV files that have no header.
    delimiter (Optional[str]): Separator between the cells of a CSV file, such as ";"; if None,
        the comma, semicolon, tab or bar that is found in its first line.
    dev_share (float): Share of the training conversations to hold out as split `dev`, 0.0
        to less than 1.0; only if no dev is given. A conversation is drawn by a hash of its
        name, or number, and dev_seed.
    test_share (float): The same for the split `test`.
    dev_seed (int): Seed of that draw.
    on_bad_data (str): Whether unreadable data is an "error" or is left out ("skip"). "skip"
        always leaves out a whole conversation, and lists everything left out.
    max_bad_share (float): Share of a file's conversations that may be left out, 0.0 to 1.0;
        more is an error.
    encoding (Optional[str]): Encoding of the files, such as "cp1252"; if None, UTF-8, or UTF-16
        if a byte order mark indicates it.
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one per line.
    streaming (bool): Read the files for every epoch instead of holding them in memory. A JSON
        file that is not lines is in memory while it is read, and a run that is resumed reads it
        from its beginning.
    RAISES (ConfigError): If there is no such layout, or a share is out of range, or given
        together with its split's files.
    """
    path = find_layout_file(layout)
    found = read_layout(path)
    check_delimiter(NAME, delimiter)
    reader = partial(
        read_layout_file,
        layout=found,
        label_speaker=label_speaker,
        columns=columns,
        delimiter=delimiter,
        system_turns=system_turns,
    )
    both = found.is_conversation and (label_speaker or found.label_speaker) == "both"
    options = FileOptions(
        NAME, dev_share, test_share, dev_seed, on_bad_data, max_bad_share, encoding, str(path)
    )
    text_fields = ["labels"] if both else ["text", "labels"]
    if system_turns == "context":
        text_fields.append("system")
    teacher = _LayoutTeacher(
        file_sources(
            options, lambda split: partial(reader, split=split), train=train, dev=dev, test=test
        ),
        candidates=CandidateFile(candidates) if candidates else None,
        mutators=mutators,
        streaming=streaming,
        single_turn=not found.is_conversation and not found.examples,
        text_fields=text_fields,
    )
    teacher.layout = None if layout in shipped_layouts() else (layout, found)
    return teacher


class _LayoutTeacher(Teacher):
    """Save a custom layout in the folders of models, so that they can read files in that layout.

    layout (Optional[Tuple[str, CorpusLayout]]): Name of the layout in the config, and the layout.
    """

    layout: Optional[Tuple[str, CorpusLayout]] = None

    def to_disk(self, folder: Path) -> None:
        if self.layout is not None:
            name, layout = self.layout
            place = layout_place(folder, name)
            place.parent.mkdir(exist_ok=True)
            values = asdict(layout).items()
            write_json(place, {key: value for key, value in values if value is not None})
