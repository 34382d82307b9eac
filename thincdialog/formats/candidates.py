"""Candidates of labels: read from a file, and seen to hold the labels."""

from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Iterator, List, Optional, Union

from ..errors import DataError
from ..messages import Message
from .text_file import read_lines
from .wording import short

_refuses: ContextVar[bool] = ContextVar("refuses_outside_labels", default=True)


def refuses_outside_labels() -> bool:
    """Whether a label that is not among its candidates is an error, as in training."""
    return _refuses.get()


@contextmanager
def reading_outside_labels() -> Iterator[None]:
    """A stretch in which such labels are read, so that all of them can be counted."""
    token = _refuses.set(False)
    try:
        yield
    finally:
        _refuses.reset(token)


def check_candidates(message: Message, path: object, line: Optional[int] = None) -> None:
    """See that a message's labels are among its candidates, if it has any.

    RAISES (DataError): If one is not, and such ones are refused.
    """
    if "label_candidates" in message:
        candidates = message["label_candidates"]
        for label in message.get("labels", ()):
            if label not in candidates and refuses_outside_labels():
                text = (
                    f"the label {short(label)} is not among the {len(candidates)} label_candidates"
                )
                hint = "add it there, or leave label_candidates out"
                raise DataError(path, f"{text}: {hint}", line)


def read_list(path: Union[str, Path], numbered: bool = False) -> List[str]:
    """The distinct non-blank lines of a file, in their order, for instance candidates.

    path (Union[str, Path]): The file, one text a line.
    numbered (bool): As fbdialog files have it: take the leading number off each line
        if the first starts with "1 "; `\\n` stands for a line end.
    RAISES (DataError): As ``read_lines``, or if all lines are blank.
    """
    lines = [line for _, line in read_lines(path) if line and not line.isspace()]
    if numbered:
        if lines and lines[0].startswith("1 "):
            lines = [line.partition(" ")[2] for line in lines]
        lines = [line.replace("\\n", "\n") for line in lines]
    if not lines:
        raise DataError(path, "holds no candidates: expected one a line")
    return list(dict.fromkeys(lines))
