"""Conversations in JSONL, as turns with speakers or as ParlAI writes them."""

from functools import partial
from typing import Any, Dict, List, Optional, Union

from ..formats.conversations import read_conversations
from ..formats.text_file import PathOrPaths
from ..registry import registry
from .arguments import CandidateFile, file_sources
from .teacher import Teacher


@registry.teachers("thincdialog.Conversations.v1")
def Conversations(
    train: Optional[PathOrPaths] = None,
    dev: Optional[PathOrPaths] = None,
    test: Optional[PathOrPaths] = None,
    label_speaker: str = "second",
    mutators: Optional[Union[List[Any], Dict[str, Any]]] = None,
    candidates: Optional[str] = None,
    streaming: bool = False,
) -> Teacher:
    """One conversation a line: `{"id": ..., "turns": [{"speaker": ..., "text": ...}]}`,
    or ParlAI's `{"dialog": [[{"id": ..., "text": ...}, ...], ...]}`.

    Consecutive turns of one speaker become one, joined by a line end; likewise the
    turns between two of a named label speaker. Where the label side opens the
    conversation, its first turn answers `__SILENCE__` (see
    `thincdialog.WithoutOpenings.v1`). Turns of ParlAI's speaker `context` are left out.

    train (Optional[Union[str, List[str]]]): File or files; plain or gzip'd.
    dev (Optional[Union[str, List[str]]]): The same for the split `dev`.
    test (Optional[Union[str, List[str]]]): The same for the split `test`.
    label_speaker (str): Whose turns are the labels: "second" (every second turn),
        "first" (the others), "both" (two episodes a conversation), or the name of a
        speaker, who then answers all the others.
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one a line.
    streaming (bool): Read the files for every epoch instead of holding them.
    """
    reader = partial(read_conversations, label_speaker=label_speaker)
    return Teacher(
        file_sources(reader, train=train, dev=dev, test=test),
        candidates=CandidateFile(candidates) if candidates else None,
        mutators=mutators,
        streaming=streaming,
        # With both sides every turn is a label once, and most are a text as well.
        text_fields=("labels",) if label_speaker == "both" else ("text", "labels"),
    )
