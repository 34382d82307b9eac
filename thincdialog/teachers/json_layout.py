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
    """Data of any form: JSON, JSON lines, YAML, CSV, TSV, Parquet, or lines of text. A layout says
    where texts and labels stand in it. Your own is a short YAML or JSON file (`CorpusLayout` in
    thincdialog/formats/layout_file.py says what stands in it), or one of these:

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
    label_speaker (Optional[str]): Of conversations, whose turns are the labels, see
        `thincdialog.Conversations.v1`; as the layout says if None.
    system_turns (str): What becomes of a system's turns before the others begin: "context"
        (turns before the first text, which agents read, and the field `system`), "field"
        (the field `system` of each message alone) or "drop".
    columns (Optional[List[str]]): Column names of CSV or TSV files that have no header.
    delimiter (Optional[str]): What stands between the cells of a CSV file, such as ";"; if
        None, the comma, semicolon, tab or bar that its first line tells.
    dev_share (float): Share of the training conversations to hold out as split `dev`, 0.0
        to less than 1.0; only if no dev is given. A conversation is drawn by a hash of its
        name, or number, and dev_seed.
    test_share (float): The same for the split `test`.
    dev_seed (int): Seed of that draw.
    on_bad_data (str): What cannot be read is an "error", or is left out ("skip"): a whole
        conversation, however little of it is wrong. What was left out is listed.
    max_bad_share (float): Share of a file's conversations that may be left out, 0.0 to 1.0;
        more is an error.
    encoding (Optional[str]): Of the files, such as "cp1252"; if None, UTF-8, or UTF-16 where
        a byte order mark says so.
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one a line.
    streaming (bool): Read the files for every epoch instead of holding them. A JSON file
        that is not lines is held while it is read, and is read from its beginning where
        a run goes on.
    RAISES (ConfigError): If there is no such layout, or a share is out of range, or given
        beside its split's files.
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
    """Keeps a custom layout in the folders of models: they read files like the training data.

    layout (Optional[Tuple[str, CorpusLayout]]): Its name in the config, and the layout.
    """

    layout: Optional[Tuple[str, CorpusLayout]] = None

    def to_disk(self, folder: Path) -> None:
        if self.layout is not None:
            name, layout = self.layout
            place = layout_place(folder, name)
            place.parent.mkdir(exist_ok=True)
            values = asdict(layout).items()
            write_json(place, {key: value for key, value in values if value is not None})
