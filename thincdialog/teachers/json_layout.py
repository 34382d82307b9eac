"""Corpora in JSON or tables of any layout, described in a few lines."""

from functools import partial
from typing import Any, Dict, List, Optional, Union

from ..formats.json_layout import SystemTurns, read_layout_file
from ..formats.layout_file import find_layout
from ..formats.text_file import PathOrPaths
from ..registry import registry
from .arguments import CandidateFile, FileSource
from .teacher import Teacher


@registry.teachers("thincdialog.JSONLayout.v1")
def JSONLayout(
    layout: str,
    train: Optional[PathOrPaths] = None,
    dev: Optional[PathOrPaths] = None,
    test: Optional[PathOrPaths] = None,
    label_speaker: Optional[str] = None,
    system_turns: SystemTurns = "context",
    mutators: Optional[Union[List[Any], Dict[str, Any]]] = None,
    candidates: Optional[str] = None,
    streaming: bool = False,
) -> Teacher:
    """A corpus in JSON, JSON lines, CSV or TSV as it is published. A layout says where
    its texts and labels stand: `alpaca`, `convokit`, `dailydialog`, `dolly`, `messages`,
    `multiwoz21`, `personachat`, `prompt-completion`, `sgd`, `sharegpt`, `taskmaster` and
    `topicalchat` come along; your own is a short YAML or JSON file (`CorpusLayout` in
    thincdialog/formats/layout_file.py says what stands in it).

    layout (str): Name of a layout that comes along, or path of a .yml or .json file.
    train (Optional[Union[str, List[str]]]): File or files; plain or gzip'd.
    dev (Optional[Union[str, List[str]]]): The same for the split `dev`.
    test (Optional[Union[str, List[str]]]): The same for the split `test`.
    label_speaker (Optional[str]): Of conversations, whose turns are the labels, see
        `thincdialog.Conversations.v1`; as the layout says if None.
    system_turns (str): What becomes of a system's turns before the others begin: "context"
        (turns before the first text, which agents read, and the field `system`), "field"
        (the field `system` of each message alone) or "drop".
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one a line.
    streaming (bool): Read the files for every epoch instead of holding them. A JSON file
        that is not lines is held while it is read, and is read from its beginning where
        a run goes on.
    RAISES (ConfigError): If there is no such layout.
    """
    found = find_layout(layout)
    reader = partial(
        read_layout_file, layout=found, label_speaker=label_speaker, system_turns=system_turns
    )
    given = {"train": train, "dev": dev, "test": test}
    both = found.is_conversation and (label_speaker or found.label_speaker) == "both"
    text_fields = ["labels"] if both else ["text", "labels"]
    if system_turns == "context":
        text_fields.append("system")
    return Teacher(
        {
            split: FileSource(partial(reader, split=split), paths)
            for split, paths in given.items()
            if paths
        },
        candidates=CandidateFile(candidates) if candidates else None,
        mutators=mutators,
        streaming=streaming,
        single_turn=not found.is_conversation and not found.examples,
        text_fields=text_fields,
    )
