"""Numbered lines, as fbdialog and the bAbI tasks have them."""

from functools import partial
from typing import Any, Dict, List, Literal, Optional, Union

from ..formats.numbered_text import read_numbered_text
from ..formats.text_file import PathOrPaths
from ..registry import registry
from .arguments import CandidateFile, FileOptions, file_sources
from .teacher import Teacher

NAME = "thincdialog.NumberedText.v1"


@registry.teachers("thincdialog.NumberedText.v1")
def NumberedText(
    train: Optional[PathOrPaths] = None,
    dev: Optional[PathOrPaths] = None,
    test: Optional[PathOrPaths] = None,
    supporting: bool = True,
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
    dev_share (float): Share of the training conversations to hold out as split `dev`, 0.0
        to less than 1.0; only if no dev is given. A conversation is drawn by a hash of its
        name, or number, and dev_seed.
    test_share (float): The same for the split `test`.
    dev_seed (int): Seed of that draw.
    on_bad_data (str): What cannot be read is an "error", or is left out ("skip"): a whole
        conversation, however little of it is wrong. What was left out is listed.
    max_bad_share (float): Share of a file's conversations that may be left out, 0.0 to 1.0;
        more is an error.
    encoding (Optional[str]): Of the files, such as "cp1252"; if None, UTF-8, or UTF-16 where
        a byte order mark says so.
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one a line,
        numbered or not; `\\n` stands for a line end.
    streaming (bool): Read the files for every epoch instead of holding them.
    RAISES (ConfigError): If a share is out of range, or given beside its split's files.
    """
    reader = partial(read_numbered_text, supporting=supporting)
    options = FileOptions(
        NAME, dev_share, test_share, dev_seed, on_bad_data, max_bad_share, encoding
    )
    return Teacher(
        file_sources(options, lambda _: reader, train=train, dev=dev, test=test),
        candidates=CandidateFile(candidates) if candidates else None,
        mutators=mutators,
        streaming=streaming,
    )
