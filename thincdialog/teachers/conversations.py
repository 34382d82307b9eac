"""Conversations in JSONL, as turns with speakers or in ParlAI's format."""

from functools import partial
from typing import Any, Dict, List, Literal, Optional, Union

from ..formats.conversations import read_conversations
from ..formats.text_file import PathOrPaths
from ..registry import registry
from .arguments import CandidateFile, FileOptions, file_sources
from .teacher import Teacher

NAME = "thincdialog.Conversations.v1"


@registry.teachers("thincdialog.Conversations.v1")
def Conversations(
    train: Optional[PathOrPaths] = None,
    dev: Optional[PathOrPaths] = None,
    test: Optional[PathOrPaths] = None,
    label_speaker: str = "second",
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
    """Read one conversation per line: `{"id": ..., "turns": [{"speaker": ..., "text": ...}]}`,
    or ParlAI's `{"dialog": [[{"id": ..., "text": ...}, ...], ...]}`.

    Consecutive turns of one speaker become one, joined by a line end; likewise the
    turns between two turns of a named label speaker. If the label side opens the
    conversation, its first turn answers `__SILENCE__` (see
    `thincdialog.WithoutOpenings.v1`). Turns of ParlAI's speaker `context` are left out.

    train (Optional[Union[str, List[str]]]): File or files; plain or gzip'd.
    dev (Optional[Union[str, List[str]]]): The same for the split `dev`.
    test (Optional[Union[str, List[str]]]): The same for the split `test`.
    label_speaker (str): Speaker whose turns are the labels: "second" (every second turn),
        "first" (the others), "both" (two episodes per conversation), or the name of a
        speaker, who then answers all the others. A conversation without such a turn is left
        out and counted; a file in which the speaker does not occur is an error.
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
    streaming (bool): Read the files for every epoch instead of holding them in memory.
    RAISES (ConfigError): If a share is out of range, or given together with its split's files.
    """
    reader = partial(read_conversations, label_speaker=label_speaker)
    options = FileOptions(
        NAME, dev_share, test_share, dev_seed, on_bad_data, max_bad_share, encoding
    )
    return Teacher(
        file_sources(options, lambda _: reader, lambda _: True, train=train, dev=dev, test=test),
        candidates=CandidateFile(candidates) if candidates else None,
        mutators=mutators,
        streaming=streaming,
        # With both sides every turn is a label once, and most are a text as well.
        text_fields=("labels",) if label_speaker == "both" else ("text", "labels"),
    )
