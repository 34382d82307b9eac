"""Which teacher reads a file that another one cannot read."""

from pathlib import Path
from typing import Dict, Optional

from ..errors import DataError
from ..formats.guessing import about, readable_format
from ..formats.layout_file import shipped_layouts

_CONVERSATIONS = {"@teachers": "thincdialog.Conversations.v1"}
_LABELLED = {"@teachers": "thincdialog.LabelledText.v1"}
_NUMBERED = {"@teachers": "thincdialog.NumberedText.v1"}

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
        text = f"{error}\n  The file looks like {format}. To read it: {override}"
        Exception.__init__(self, text)

    def of_task(self, name: str) -> "OtherFormatError":
        """The same, with the task's name in what is to be pasted."""
        return OtherFormatError(self.error, self.format, self.settings, name)


def with_other_teacher(
    error: DataError, path: str, own: str, layout_file: str = "", encoding: Optional[str] = None
) -> DataError:
    """An error of a teacher's reader, with the teacher or layout that can read the file, if any.

    path (str): The file, from which nothing could be read.
    own (str): The teacher's registered name.
    layout_file (str): That of its layout; "" for none.
    encoding (Optional[str]): Of the file, see ``Bookmark``.
    """
    # A pipe can be read once only.
    if not Path(path).is_file():
        return error
    name = readable_format(path, encoding)
    if name is None:
        what = "" if layout_file else about(path, encoding)
        return DataError(path, f"looks like {what}") if what else error
    settings = SETTINGS.get(name) or {"@teachers": "thincdialog.JSONLayout.v1", "layout": name}
    is_same = settings["@teachers"] == own
    if is_same and str(shipped_layouts().get(name, "")) == layout_file:
        return error
    return OtherFormatError(error, name, settings)
