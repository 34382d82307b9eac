"""Keep a reader's position in its files, the problems there, and counts of omitted data."""

from collections import Counter
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, TypeVar

from ..errors import DataError
from ..messages import Episode
from .bad_data import BadData
from .spellings import Place, Spellings

# A position in a file: byte of the unpacked content at which a line begins, and lines before it.
Spot = Tuple[int, int]

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
    spot (Spot): Position in the file.
    count (int): Number of units that the reader had counted up to `spot`, for ids.
    columns (Optional[List[str]]): Column names from the beginning of a table.
    delimiter (Optional[str]): Delimiter of a table's cells, once it is known.
    begin, end (Spot): Where the line or row that was read last begins and ends.
    path (object): The file of the line or row that was read last.
    left_out (Optional[Counter]): Number of omitted items that are no part of an episode, by kind.
    encoding (Optional[str]): Encoding of the file; None for UTF-8, or the encoding of the byte
        order mark.
    has_flags (bool): Whether hints name the flags of a command instead of a config's settings.
    counts (BadData): Number of units of the file that were read and left out so far.
    piece (Optional[Tuple]): Lines from `spot` on that were read already, and their encoding. The
        reader reads only these lines.
    last (Optional[int]): Number of the first unit that must not be read, if the source is read by
        numbers.
    bad (Optional[BadData]): Collects errors of data that cannot be read; None to raise the first.
    speakers (Optional[Spellings]): Spellings of the speakers so far; None to allow any spelling.
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
        self.speakers: Optional[Spellings] = None
        self.lines: List[Optional[int]] = []
        self.has_flags = False
        self.piece: Optional[Tuple[bytes, str]] = None
        self.last: Optional[int] = None
        mark = mark or {}
        self.counts = BadData("", *mark.get("counts", ()))
        self.file: int = mark.get("file", 0)
        self.spot: Spot = (mark.get("byte", 0), mark.get("line", 0))
        self.count: int = mark.get("count", 0)
        self.columns: Optional[List[str]] = mark.get("columns")
        self.delimiter: Optional[str] = mark.get("delimiter")
        self.begin = self.end = self.spot

    @property
    def is_at_begin(self) -> bool:
        """Whether the bookmark is at the beginning of a file that is to be read completely."""
        return self.spot == (0, 0) and self.piece is None

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
            self.file, self.spot, self.count = file, (0, 0), 0
            self.columns = self.delimiter = None
            self.counts = BadData("")
            self.begin = self.end = self.spot

    def mark(self) -> Dict[str, Any]:
        """Return the position as JSON values."""
        byte, line = self.spot
        mark: Dict[str, Any] = {"file": self.file, "byte": byte, "line": line, "count": self.count}
        # At the beginning of a file, column names are read again and units are counted again.
        more: Dict[str, Any] = {"columns": self.columns, "delimiter": self.delimiter}
        more.update({"counts": self.counts.numbers()} if byte else {"columns": None})
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
                            line = self.lines[number] if self.lines else self.end[1]
                            name = f"example {message.get('id', number)}"
                            classes.add(label, Place(self.counts.path, line, name))
            except DataError as error:
                self.refuse(error)
            else:
                yield episode
                self.counts.n_read += self.counts.unit != "conversations"

    def check_speaker(self, name: str, line: Optional[int] = None, within: str = "") -> None:
        """Check that a speaker is spelled as before.

        line (Optional[int]), within (str): Where the name is (see ``Place``).
        RAISES (DataError): If the speaker is spelled differently.
        """
        if self.speakers is not None and name not in self.speakers.known:
            self.speakers.add(name, Place(self.counts.path, line, within))

    def error(self, text: str) -> DataError:
        """Return an error about the line that was read last."""
        return DataError(self.path, text, self.end[1])

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
        """Count omitted items that are no part of an episode.

        kind (str): The kind of the items, as a message names it.
        """
        if self.left_out is not None:
            self.left_out[kind] += n_times
