"""A teacher of numbered lines, the format of fbdialog and the bAbI tasks."""

from functools import partial

from ..formats.numbered_text import read_numbered_text
from .arguments import FileOptions
from .file_teacher import file_teacher, read_files
from .teacher import Teacher


@file_teacher("thincdialog.NumberedText.v1")
def NumberedText(options: FileOptions, supporting: bool = True) -> Teacher:
    """Read lines `number text[<TAB>answers[<TAB>third[<TAB>candidates]]]`, such as
    `3 Where is Mary?<TAB>bathroom<TAB>1`.

    A number that is not larger than the previous one begins an episode. A line without an
    answer is a statement: it is put before the next question, joined by a line end. Statements
    after the last question are left out. Answers and candidates are split at `|`;
    `\\n` means a line end.

    supporting (bool): Whether the third column holds numbers of supporting lines (bAbI; kept as
        `supporting`) instead of a reward (fbdialog; the rewards of statements are added to the
        reward of the next question). If candidates follow, the third column is always a reward.
    """
    reader = partial(read_numbered_text, supporting=supporting)
    return read_files(options, lambda _: reader)
