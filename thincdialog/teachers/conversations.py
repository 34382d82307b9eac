"""A teacher of conversations in JSONL, as turns with speakers or in ParlAI's format."""

from functools import partial

from ..formats.conversations import read_conversations
from .arguments import FileOptions
from .file_teacher import file_teacher, read_files
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
