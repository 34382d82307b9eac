"""Count the data of files that is left out, and collect the errors to show them together."""

from dataclasses import dataclass, field
from typing import List, Tuple

from ..errors import MAX_LISTED, DataError
from .spellings import Counted

# Number of problems that a summary shows.
N_NAMED = 5


@dataclass
class BadData:
    """Count the data of one file that is left out. A conversation counts once, however many
    problems it has.

    path (str): The file.
    n_read (int): Number of units (see `unit`) that were read.
    n_skipped (int): Number of units that cannot be read.
    n_problems (int): Number of problems in the units that cannot be read.
    n_without (int): Number of units that were read and give no example.
    unit (str): The unit of the counts: "conversations", "episodes" or "examples".
    note (str): An oddity of the whole file; "" for none.
    first (List[DataError]): The first problems, with their lines, ``MAX_LISTED`` at most.
    names (List[Counted]): Spellings of the speakers and classes, if these are the counts of a part
        of a file.
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

        is_same (bool): Whether the problem is in a conversation that was counted already.
        """
        self.n_problems += 1
        self.n_skipped += not is_same
        if len(self.first) < MAX_LISTED:
            self.first.append(error)

    def numbers(self) -> Tuple[int, int, int, int, str, str]:
        """Return the counts, the unit and the note, as JSON values in the order of the fields."""
        counted = self.n_read, self.n_skipped, self.n_problems, self.n_without
        return *counted, self.unit, self.note

    @property
    def share(self) -> float:
        """The fraction of units that cannot be read, 0.0 to 1.0."""
        return self.n_skipped / max(1, self.n_read + self.n_skipped)

    def summary(self) -> str:
        """Describe the data that was left out: counts, reasons and the first problems, by line."""
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
        """List the first problems, one per line, and the number of further problems.

        n_lines (int): Number of problems to list, ``MAX_LISTED`` at most.
        """
        lines = [f"  {error}" for error in self.first[:n_lines]]
        more = self.n_problems - len(lines)
        return [*lines, f"  ... and {more:,} more"] if more else lines

    def too_many(self, max_share: float) -> DataError:
        """Return the error for a file of which too much would be left out."""
        total = self.n_read + self.n_skipped
        text = f"{self.n_skipped:,} of {total:,} {self.unit} cannot be read ({percent(self)}); "
        text += f"max_bad_share = {max_share} allows {100 * max_share:g} %"
        # If reading began within the file, all problems may be before that position.
        return DataError(self.path, f"{text}; the first: {self.first[0]}" if self.first else text)


class BadDataError(DataError):
    """List the problems of several files in one error.

    found (Sequence[BadData]): The problems of each file.
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
    """Format the fraction of units that cannot be read, for a message."""
    return f"{100 * bad.share:.1f} %" if bad.share >= 0.001 else "< 0.1 %"


def why_without(unit: str) -> str:
    """Explain why some units that were read give no example.

    unit (str): The unit, see ``BadData``.
    """
    if unit == "conversations":
        return "label_speaker gives no reply in them"
    return "there is no text or no label in them"
