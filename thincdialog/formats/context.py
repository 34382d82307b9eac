"""The state of a reading: its position, the problems to tolerate, and counts of omitted data."""

from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, TypeVar

from ..errors import MAX_LISTED, DataError
from ..messages import Episode
from .spellings import Place, Spellings

# Number of problems that a summary shows.
N_NAMED = 5


@dataclass
class BadData:
    """Count the data of one file that is left out. A conversation with several problems counts
    once.

    path (str): The file.
    n_read (int): Number of units (see `unit`) that were read.
    n_skipped (int): Number of units that cannot be read.
    n_problems (int): Number of problems in the units that cannot be read.
    n_without (int): Number of units that were read and give no example.
    unit (str): The unit of the counts: "conversations", "episodes" or "examples".
    note (str): Description of something unusual in the whole file; "" for none.
    first (List[DataError]): The first problems, with their lines, ``MAX_LISTED`` at most.
    classes (Optional[Spellings]): The labels that are classes, if these are the counts of a part of
        a file.
    """

    path: str
    n_read: int = 0
    n_skipped: int = 0
    n_problems: int = 0
    n_without: int = 0
    unit: str = "episodes"
    note: str = ""
    first: List[DataError] = field(default_factory=list)
    classes: Optional[Spellings] = None

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
            why = why_without(self.unit)
            lines.append(f"{self.path}  {self.n_without:,} {of_all} left out: {why}")
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
        # If reading began within the file, ``first`` may be empty: the problems may be before it.
        text += f"; first problem: {self.first[0]}" if self.first else ""
        return DataError(self.path, text)


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
        return "the label_speaker does not reply in them"
    return "they lack a text or a label"


@dataclass(frozen=True)
class Tolerance:
    """Hold the problems that are tolerated. (They are kept in a context variable, because the code
    between the caller and the readers, such as a teacher, does not know why data is read.)

    unlabelled (bool): Whether examples without a label are tolerated, so that they can be answered.
    outside_labels (bool): Whether labels that are not among their candidates are tolerated.
    empty_labels (bool): Whether empty lists of labels are tolerated, for agents that also train on
        texts without a label.
    bad_data (Optional[Dict[str, BadData]]): Collects errors of data that cannot be read, by path.
        If given, errors do not end the reading of a file, whatever the teachers' settings.
    classes (Optional[Spellings]): Spellings of the labels, if they are classes; None to tolerate
        labels that differ only by case or blanks, as replies may.
    needs_text (bool): Whether only text and features are read, so that other texts are not inputs.
    """

    unlabelled: bool = False
    outside_labels: bool = False
    empty_labels: bool = False
    bad_data: Optional[Dict[str, BadData]] = None
    classes: Optional[Spellings] = None
    needs_text: bool = False


TRAINING = Tolerance()
# Advice for an empty label that is not tolerated.
NEEDS_LABEL = "give the example a label (thincdialog.MultiLabel.v1 needs none)"
_tolerance: ContextVar[Tolerance] = ContextVar("tolerance", default=TRAINING)


def tolerance() -> Tolerance:
    """Return the current tolerance."""
    return _tolerance.get()


@contextmanager
def tolerating(**more: Any) -> Iterator[None]:
    """Tolerate more problems inside a ``with`` block.

    more (Any): Fields of ``Tolerance``. A field that is None or False is unchanged.
    """
    given = {name: value for name, value in more.items() if value not in (None, False)}
    token = _tolerance.set(replace(tolerance(), **given))
    try:
        yield
    finally:
        _tolerance.reset(token)


Item = TypeVar("Item")
Made = TypeVar("Made")


class Bookmark:
    """Hold a position from which the next episode can be read without the data before it.

    The reader of a file moves the bookmark while it reads. The bookmark is never after the
    beginning of the episode that was yielded last. If a reader does not move the bookmark, reading
    resumes at the beginning of the file.

    mark (Optional[Mapping]): Position to begin at, from ``mark``; None for the beginning.
    left_out, encoding: Initial values of the attributes below.

    file (int): Index of the file.
    spot (int): Position in the file: number of lines before it.
    count (int): Number of units that the reader had counted up to `spot`, for ids.
    columns (Optional[List[str]]): Column names from the beginning of a table.
    delimiter (Optional[str]): Delimiter of a table's cells, once it is known.
    begin, end (int): Where the line or row that was read last begins and ends, like `spot`; so
        `end` is the number of its last line.
    path (object): The file of the line or row that was read last.
    left_out (Optional[Counter]): Number of omitted items that are not part of an episode, by kind.
    encoding (Optional[str]): Encoding of the file; None for UTF-8, or the encoding of the byte
        order mark.
    has_flags (bool): Whether hints name the flags of a command instead of a config's settings.
    counts (BadData): Number of units of the file that were read and left out so far.
    piece (Optional[str]): Lines from `spot` on that were read already. The reader reads only these
        lines.
    section (Optional[Tuple[int, int]]): Number of the section to read, and of all sections, if the
        lines are divided in turn; None to read all lines.
    last (Optional[int]): Number of the first unit that must not be read, if the source is read by
        numbers.
    whole (Any): Value of a JSON or YAML file that was read already; None to read it.
    bad (Optional[BadData]): Collects errors of data that cannot be read; None to raise the first.
    lines (List[Optional[int]]): Line numbers of the messages of the episode that was read last;
        empty if all messages are in the line that was read last.
    """

    def __init__(
        self,
        mark: Optional[Mapping[str, Any]] = None,
        left_out: Optional[Counter[str]] = None,
        encoding: Optional[str] = None,
    ):
        self.path: object = ""
        self.left_out = left_out
        self.encoding = encoding
        self.bad: Optional[BadData] = None
        self.lines: List[Optional[int]] = []
        self.has_flags = False
        self.piece: Optional[str] = None
        self.section: Optional[Tuple[int, int]] = None
        self.last: Optional[int] = None
        self.whole: Any = None
        mark = mark or {}
        self.counts = BadData("", *mark.get("counts", ()))
        self.file: int = mark.get("file", 0)
        self.spot: int = mark.get("line", 0)
        self.count: int = mark.get("count", 0)
        self.columns: Optional[List[str]] = mark.get("columns")
        self.delimiter: Optional[str] = mark.get("delimiter")
        self.begin = self.end = self.spot

    @property
    def is_at_begin(self) -> bool:
        """Whether the bookmark is at the beginning of a file that is to be read completely."""
        return self.spot == 0 and not self.is_part

    @property
    def is_part(self) -> bool:
        """Whether only some of the lines are read, wherever reading begins."""
        return self.piece is not None or self.section is not None

    def has(self, line: int) -> bool:
        """Return whether a line of the file is in the section to read.

        line (int): Number of the line, from 1.
        """
        # Sections of short files are even, because they do not all begin with the same section.
        own, n = self.section or (0, 1)
        return (self.file + line) % n == own

    def before(self, count: int = 0) -> None:
        """Move to the beginning of the line or row that was read last.

        count (int): Number of units that were counted so far.
        """
        # The position stays the same if the source is not read by lines.
        if self.begin != self.spot:
            self.spot, self.count = self.begin, count

    def open(self, file: int) -> None:
        """Move to the beginning of a file, unless the bookmark is in this file already."""
        if file != self.file:
            self.file, self.spot, self.count = file, 0, 0
            self.columns = self.delimiter = None
            self.counts = BadData("")
            self.begin = self.end = self.spot

    def mark(self) -> Dict[str, Any]:
        """Return the position as JSON values."""
        mark: Dict[str, Any] = {"file": self.file, "line": self.spot, "count": self.count}
        # At the beginning of a file, column names are read again and units are counted again.
        more: Dict[str, Any] = {"columns": self.columns, "delimiter": self.delimiter}
        more.update({"counts": self.counts.numbers()} if self.spot else {"columns": None})
        mark.update((name, value) for name, value in more.items() if value is not None)
        return mark

    def counted(
        self, episodes: Iterable[Episode], classes: Optional[Spellings] = None
    ) -> Iterator[Episode]:
        """Yield the same episodes, and count them, unless the reader counts conversations.

        An episode is counted only when the next one is requested, because a mark that is made
        before leads to the beginning of this episode.

        classes (Optional[Spellings]): Spellings of the labels; None to allow any spelling.
        RAISES (DataError): If labels differ only by case or blanks, and none may be left out.
        """
        for episode in episodes:
            try:
                for number, message in enumerate(episode if classes is not None else ()):
                    for label in message.get("labels", ()):
                        if classes is not None and label not in classes.known:
                            line = self.lines[number] if self.lines else self.end
                            name = f"example {message.get('id', number)}"
                            classes.add(label, Place(self.counts.path, line, name))
            except DataError as error:
                self.refuse(error)
            else:
                yield episode
                self.counts.n_read += self.counts.unit != "conversations"

    def error(self, text: str) -> DataError:
        """Return an error about the line that was read last."""
        return DataError(self.path, text, self.end)

    def refuse(self, error: DataError, is_same: bool = False) -> None:
        """Collect the error of data that cannot be read and is left out, or raise it.

        is_same (bool): Whether an error of the same episode was collected before.
        RAISES (DataError): The error, if data must not be left out.
        """
        if self.bad is None:
            raise error
        self.bad.add(error, is_same)

    def try_each(self, make: Callable[[Item], Made], items: Iterable[Item]) -> Iterator[Made]:
        """Yield the result of a function for each item, and refuse the errors that it raises.

        make (Callable): Takes an item; raises a ``DataError`` if the item cannot be read.
        RAISES (DataError): The first error, if data must not be left out.
        """
        for item in items:
            try:
                made = make(item)
            except DataError as error:
                self.refuse(error)
            else:
                yield made

    @property
    def n_refused(self) -> int:
        """The number of errors that were collected so far."""
        return self.bad.n_problems if self.bad else 0

    def leave_out(self, kind: str, n_times: int = 1) -> None:
        """Count omitted items that are not part of an episode.

        kind (str): The kind of the items, as a message names it.
        """
        if self.left_out is not None:
            self.left_out[kind] += n_times
