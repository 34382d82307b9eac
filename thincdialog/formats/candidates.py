"""Read candidates from a file, and check the candidates and labels of messages."""

import re
from pathlib import Path
from typing import Iterable, List, Optional, Union

from ..errors import DataError
from ..messages import Message
from .context import tolerance
from .text_file import read_lines
from .wording import short

# The beginning of a line in ParlAI's numbered files.
NUMBERED = re.compile(r"\d+ ")


def check_candidates(message: Message, path: object, line: Optional[int] = None) -> None:
    """Check that a message's labels are among its candidates, if it has any.

    RAISES (DataError): If a label is not among them, and that is not tolerated.
    """
    candidates = message.get("label_candidates")
    if candidates is not None:
        for label in message.get("labels") or ():
            if label not in candidates and not tolerance().outside_labels:
                text = (
                    f"the label {short(label)} is not among the {len(candidates)} label_candidates"
                )
                hint = "add it there, or leave label_candidates out"
                raise DataError(path, f"{text}: {hint}", line)


def list_texts(message: Message, path: object, where: str, hint: str = "") -> None:
    """Convert the labels and candidates of a message from Python code to lists of strings.

    where (str): Name of the message, for errors.
    hint (str): Advice to append to an error.
    RAISES (DataError): If a label or candidate is not a string, or a label is not among the
        candidates (see ``check_candidates``).
    """
    for name in ("labels", "label_candidates"):
        if message.get(name) is not None:
            value = message[name]
            is_one = isinstance(value, str) or not isinstance(value, Iterable)
            values = message[name] = [value] if is_one else list(value)
            if not all(isinstance(item, str) for item in values):
                text = f"'{name}' of {where} must be strings, found {short(values)}{hint}"
                raise DataError(path, text)
    check_candidates(message, f"{path}: {where}")


def read_list(path: Union[str, Path]) -> List[str]:
    """Read the distinct non-blank lines of a file, in their order.

    path (Union[str, Path]): The file, one text per line.
    RAISES (DataError): As ``read_lines``, or if all lines are blank.
    """
    lines = [line for _, line in read_lines(path) if line and not line.isspace()]
    if not lines:
        raise DataError(path, "has only blank lines: expected one text per line")
    return list(dict.fromkeys(lines))


def read_candidates(path: Union[str, Path]) -> List[str]:
    """Read the distinct candidates in a file, one per line; `\\n` is read as a line end.

    ParlAI's numbered forms are read as well. If every line begins with a number and the first of
    these is 1, the numbers are left out. If such lines have tabs, the candidates are the replies
    after the first tab, separated by `|`.

    path (Union[str, Path]): The file.
    RAISES (DataError): As ``read_list``, or if no line has a reply.
    """
    lines = read_list(path)
    if lines[0].startswith("1 ") and all(map(NUMBERED.match, lines)):
        lines = [line.partition(" ")[2] for line in lines]
        if any("\t" in line for line in lines):
            cells = (line.split("\t")[1:2] for line in lines)
            lines = [text for replies in cells for text in "|".join(replies).split("|") if text]
    if not lines:
        raise DataError(path, "holds no candidates: no line has a reply after a tab")
    return list(dict.fromkeys(line.replace("\\n", "\n") for line in lines))
