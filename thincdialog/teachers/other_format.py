"""Which teacher reads a file that another one cannot read."""

from contextlib import suppress
from pathlib import Path
from typing import Dict, Optional

from ..errors import DataError
from ..formats.guessing import guess_format
from ..formats.json_layout import read_layout_file
from ..formats.layout_file import find_layout, shipped_layouts

_CONVERSATIONS = {"@teachers": "thincdialog.Conversations.v1"}
_LABELLED = {"@teachers": "thincdialog.LabelledText.v1"}
_NUMBERED = {"@teachers": "thincdialog.NumberedText.v1"}

# Largest file in bytes that is tried with all layouts: some are read as a whole.
MAX_TRIED = 1 << 26

# Format to settings of the task that reads it.
SETTINGS: Dict[str, Dict[str, str]] = {
    "conversations": _CONVERSATIONS,
    "parlai-conversations": _CONVERSATIONS,
    "parlai": {"@teachers": "thincdialog.ParlAIText.v1"},
    "babi": _NUMBERED,
    "fbdialog": {**_NUMBERED, "supporting": "false"},
    "jsonl": _LABELLED,
    "csv": _LABELLED,
    "tsv": _LABELLED,
}


class OtherFormatError(DataError):
    """A file is in a format that another teacher reads.

    error (DataError): What the teacher said that could not read it.
    format (str): What the file looks like.
    settings (Dict[str, str]): Of the task, for the teacher that can.
    task (str): The task's name.
    """

    def __init__(self, error: DataError, format: str, settings: Dict[str, str], task: str = "NAME"):
        self.error, self.format, self.settings = error, format, settings
        self.path, self.line = error.path, error.line
        override = " ".join(f"--tasks.{task}.{key} {value}" for key, value in settings.items())
        text = f"{error}\n  The file looks like {format}, which another teacher reads: {override}"
        Exception.__init__(self, text)

    def of_task(self, name: str) -> "OtherFormatError":
        """The same, with the task's name in what is to be pasted."""
        return OtherFormatError(self.error, self.format, self.settings, name)


def with_other_teacher(error: DataError, path: str, own: str) -> DataError:
    """An error of a teacher's reader, with the teacher to use if the file is in its format.

    path (str): The file, from which nothing could be read.
    own (str): The teacher's registered name.
    """
    # A pipe can be read once only.
    name = _format_of(path) if Path(path).is_file() else None
    if name is None:
        return error
    settings = SETTINGS.get(name) or {"@teachers": "thincdialog.JSONLayout.v1", "layout": name}
    return error if settings["@teachers"] == own else OtherFormatError(error, name, settings)


def _format_of(path: str) -> Optional[str]:
    with suppress(DataError):
        return guess_format(path)
    for name in shipped_layouts() if Path(path).stat().st_size <= MAX_TRIED else ():
        with suppress(DataError):
            if next(read_layout_file(path, find_layout(name)), None):
                return name
    return None
