"""Numbered lines, as fbdialog and the bAbI tasks have them."""

from functools import partial
from typing import Any, Dict, List, Optional, Union

from ..formats.numbered_text import read_numbered_text
from ..formats.text_file import PathOrPaths
from ..registry import registry
from .arguments import CandidateFile, file_sources
from .teacher import Teacher


@registry.teachers("thincdialog.NumberedText.v1")
def NumberedText(
    train: Optional[PathOrPaths] = None,
    dev: Optional[PathOrPaths] = None,
    test: Optional[PathOrPaths] = None,
    supporting: bool = True,
    mutators: Optional[Union[List[Any], Dict[str, Any]]] = None,
    candidates: Optional[str] = None,
    streaming: bool = False,
) -> Teacher:
    """Lines `number text[<TAB>answers[<TAB>third[<TAB>candidates]]]`, such as
    `3 Where is Mary?<TAB>bathroom<TAB>1`.

    A number that is not above the one before begins an episode. A line without an
    answer is a statement: it stands before the next question, joined by a line end;
    behind the last question it is left out. Answers and candidates are split at `|`;
    `\\n` stands for a line end.

    train (Optional[Union[str, List[str]]]): File or files; plain or gzip'd.
    dev (Optional[Union[str, List[str]]]): The same for the split `dev`.
    test (Optional[Union[str, List[str]]]): The same for the split `test`.
    supporting (bool): Whether the third column holds numbers of supporting lines (bAbI
        questions; kept as `supporting`) rather than a reward (fbdialog; of statements,
        added to the next question's). Where candidates follow, it is a reward.
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one a line,
        numbered or not; `\\n` stands for a line end.
    streaming (bool): Read the files for every epoch instead of holding them.
    """
    reader = partial(read_numbered_text, supporting=supporting)
    return Teacher(
        file_sources(reader, train=train, dev=dev, test=test),
        candidates=CandidateFile(candidates, numbered=True) if candidates else None,
        mutators=mutators,
        streaming=streaming,
    )
