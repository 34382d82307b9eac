"""Labels and their candidates: read from a file, seen to be lists of strings, and to agree."""

import re
from pathlib import Path
from typing import Iterable, List, Optional, Union

from ..errors import DataError
from ..messages import Message
from .text_file import read_lines
from .tolerance import tolerance
from .wording import short

# What lines of ParlAI's numbered files begin with.
NUMBERED = re.compile(r"\d+ ")


def check_candidates(message: Message, path: object, line: Optional[int] = None) -> None:
    """See that a message's labels are among its candidates, if it has any.

    RAISES (DataError): If one is not, and that is not tolerated.
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
    """Make lists of strings of a message's labels and candidates, which Python code gave.

    where (str): The message, for errors; hint (str): what to say after them.
    RAISES (DataError): If they hold anything else, or do not agree (``check_candidates``).
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
    """The distinct non-blank lines of a file, in their order.

    path (Union[str, Path]): The file, one text a line.
    RAISES (DataError): As ``read_lines``, or if all lines are blank.
    """
    lines = [line for _, line in read_lines(path) if line and not line.isspace()]
    if not lines:
        raise DataError(path, "has blank lines only: expected one text per line")
    return list(dict.fromkeys(lines))


def read_candidates(path: Union[str, Path]) -> List[str]:
    """The distinct candidates in a file, one a line; `\\n` stands for a line end.

    ParlAI's numbered forms are read as well. If every line begins with a number and the first of
    these is 1, the numbers are left out. If such lines have tabs, the candidates are the replies
    behind the first tab, with `|` between several.

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
        raise DataError(path, "holds no candidates: no line has a reply behind a tab")
    return list(dict.fromkeys(line.replace("\\n", "\n") for line in lines))
