"""Find the teacher that can read a file, if another teacher could not read it."""

import copy
from pathlib import Path
from typing import Dict, Optional

from ..errors import DataError
from ..formats.guessing import about, readable_format
from ..formats.layout_file import shipped_layouts

# Name of a task that is not in a config.
NO_TASK = "NAME"

_CONVERSATIONS = {"@teachers": "thincdialog.Conversations.v1"}
_LABELLED = {"@teachers": "thincdialog.LabelledText.v1"}
_NUMBERED = {"@teachers": "thincdialog.NumberedText.v1"}

# Maps each format to the settings of a task that reads it.
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


def with_other_teacher(
    error: DataError,
    path: str,
    own: str,
    task: str,
    layout_file: str = "",
    encoding: Optional[str] = None,
) -> DataError:
    """Return an error that adds, to the error of a teacher, the teacher or layout that can read the
    file; the same error if there is none.

    error (DataError): The error of the teacher.
    path (str): The file, of which the teacher could read no example.
    own (str): Registered name of the teacher.
    task (str): Name of the task, for the options that the user can paste.
    layout_file (str): File of the teacher's layout; "" for none.
    encoding (Optional[str]): Encoding of the file, see ``Bookmark``.
    """
    # A pipe can be read only once.
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
    override = " ".join(f"--tasks.{task}.{key} {value}" for key, value in settings.items())
    other = copy.copy(error)
    other.args = (f"{error}\n  The file looks like {name}. To read it: {override}",)
    return other
