"""What is left out of a file, counted; what cannot be read may be gathered to be shown at once."""

from dataclasses import dataclass, field
from typing import List, Tuple

from ..errors import MAX_LISTED, DataError
from .spellings import Counted

# Problems that a summary of what was skipped names.
N_NAMED = 5


@dataclass
class BadData:
    """What is left out of one file. A conversation is left out once, whatever is wrong in it.

    path (str): The file.
    n_read (int): Conversations, or whatever `unit` says, that were read.
    n_skipped (int): Those that cannot be read.
    n_problems (int): What is wrong in them.
    n_without (int): Of those that were read, those that give no example.
    unit (str): What is counted: "conversations", "episodes", "examples".
    note (str): What is odd about the whole file; "" if nothing.
    first (List[DataError]): The first problems, with their lines, ``MAX_LISTED`` at most.
    names (List[Counted]): Of a part of a file, its speakers and its classes.
    """

    path: str
    n_read: int = 0
    n_skipped: int = 0
    n_problems: int = 0
    n_without: int = 0
    unit: str = "episodes"
    note: str = ""
    first: List[DataError] = field(default_factory=list)
    names: List[Counted] = field(default_factory=list)

    def add(self, error: DataError, is_same: bool = False) -> None:
        """Count a problem.

        is_same (bool): Whether it is one more in a conversation that was counted already.
        """
        self.n_problems += 1
        self.n_skipped += not is_same
        if len(self.first) < MAX_LISTED:
            self.first.append(error)

    def numbers(self) -> Tuple[int, int, int, int, str, str]:
        """What was counted, its unit and note, as JSON values in the order of the arguments."""
        counted = self.n_read, self.n_skipped, self.n_problems, self.n_without
        return *counted, self.unit, self.note

    @property
    def share(self) -> float:
        """Of all there are, those that cannot be read; 0.0 to 1.0."""
        return self.n_skipped / max(1, self.n_read + self.n_skipped)

    def summary(self) -> str:
        """What was left out and why, with the first problems, a line each."""
        lines, of_all = [], f"of {self.n_read + self.n_skipped:,} {self.unit}"
        if self.n_skipped:
            head = f"{self.path}  {self.n_skipped:,} {of_all} skipped ({percent(self)}):"
            lines += [head, *self.listed(N_NAMED)]
        if self.n_without:
            lines.append(
                f"{self.path}  {self.n_without:,} {of_all} left out: {why_without(self.unit)}"
            )
        if self.note:
            lines.append(f"{self.path}  {self.note}")
        return "\n".join(lines)

    def listed(self, n_lines: int) -> List[str]:
        """The first problems, a line each, and how many more there are.

        n_lines (int): Problems to name, ``MAX_LISTED`` at most.
        """
        lines = [f"  {error}" for error in self.first[:n_lines]]
        more = self.n_problems - len(lines)
        return [*lines, f"  ... and {more:,} more"] if more else lines

    def too_many(self, max_share: float) -> DataError:
        """The error for a file of which too much would be left out."""
        total = self.n_read + self.n_skipped
        text = f"{self.n_skipped:,} of {total:,} {self.unit} cannot be read ({percent(self)}); "
        text += f"max_bad_share = {max_share} allows {100 * max_share:g} %"
        # Where reading began within the file, they may all lie before.
        return DataError(self.path, f"{text}; the first: {self.first[0]}" if self.first else text)


class BadDataError(DataError):
    """All that is wrong in some files, in one list.

    found (Sequence[BadData]): Of each file.
    """

    def __init__(self, found: List[BadData]):
        self.found = list(found)
        self.path, self.line = self.found[0].path, self.found[0].first[0].line
        lines = []
        for bad in self.found:
            n = bad.n_problems
            lines += [f"{bad.path}  {n:,} problem{'' if n == 1 else 's'}", *bad.listed(MAX_LISTED)]
        Exception.__init__(self, "\n".join(lines))


def percent(bad: BadData) -> str:
    """The share that was left out, for a message."""
    return f"{100 * bad.share:.1f} %" if bad.share >= 0.001 else "< 0.1 %"


def why_without(unit: str) -> str:
    """Why some of what was read gives no example: conversations, or others."""
    if unit == "conversations":
        return "label_speaker gives no reply in them"
    return "there is no text or no label in them"
