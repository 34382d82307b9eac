"""Where in its files a reader is, what is wrong there, and what it leaves out."""

from collections import Counter
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from ..errors import DataError
from ..messages import Episode
from .bad_data import BadData
from .spellings import Place, Spellings

# A place in a file: byte at which a line begins (of what is unpacked), and lines before it.
Spot = Tuple[int, int]


class Bookmark:
    """Lies where the next episode can be read from, whatever stands before it.

    The reader of a file moves it as it goes. It never lies behind what an episode that
    was handed out is made of; a reader that does not move it is read from the beginning.

    mark (Optional[Mapping]): Where to begin, from ``mark``; None for the beginning.
    left_out, encoding: As below.

    file (int): Number of the file.
    spot (Spot): The place in it.
    count (int): What the reader had counted up to there, for ids.
    columns (Optional[List[str]]): A table's column names, which stand at its beginning.
    delimiter (Optional[str]): What stands between a table's cells, once that is known.
    begin, end (Spot): Where the line or row begins and ends that was read last.
    path (object): The file that it was read from.
    left_out (Optional[Counter]): Kind of what was no part of an episode to how often it came.
    encoding (Optional[str]): Of the file; UTF-8 or what a byte order mark says if None.
    has_flags (bool): Whether hints name the flags of a command, and not a config's settings.
    counts (BadData): What was read of the file so far, and what was left out of it.
    piece (Optional[Tuple]): Lines from the place on that were read already, and their encoding:
        no more than these are to be read.
    last (Optional[int]): Number of the unit, of a source that is read by numbers, that is not to
        be read any more.
    bad (Optional[BadData]): Takes what cannot be read; None: the first of it is an error.
    speakers (Optional[Spellings]): Of all that were read; None: it does not matter.
    lines (List[Optional[int]]): Those of the messages of the episode that was read last; none if
        all stand in the line that was read last.
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
        """Whether nothing of the file stands before it, and all of it is to be read."""
        return self.spot == (0, 0) and self.piece is None

    def before(self, count: int = 0) -> None:
        """Move it before the line or row that was read last.

        count (int): What was counted so far.
        """
        # What is not read by lines stays where it is.
        if self.begin != self.spot:
            self.spot, self.count = self.begin, count

    def open(self, file: int) -> None:
        """Move it to the beginning of a file, unless it lies in there."""
        if file != self.file:
            self.file, self.spot, self.count = file, (0, 0), 0
            self.columns = self.delimiter = None
            self.counts = BadData("")
            self.begin = self.end = self.spot

    def mark(self) -> Dict[str, Any]:
        """Where it lies, as JSON values."""
        byte, line = self.spot
        mark: Dict[str, Any] = {"file": self.file, "byte": byte, "line": line, "count": self.count}
        # From the beginning, the names of columns are read again, and all else is counted again.
        more: Dict[str, Any] = {"columns": self.columns, "delimiter": self.delimiter}
        more.update({"counts": self.counts.numbers()} if byte else {"columns": None})
        mark.update((name, value) for name, value in more.items() if value is not None)
        return mark

    def counted(
        self, episodes: Iterable[Episode], classes: Optional[Spellings] = None
    ) -> Iterator[Episode]:
        """The same episodes. Each counts as read, unless the reader counts conversations, when
        the next one is wanted: a mark that is made before leads to it.

        classes (Optional[Spellings]): Of the labels; None: it does not matter.
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
        """See that a speaker is spelled as before.

        line (Optional[int]), within (str): Where the name is (see ``Place``).
        RAISES (DataError): If not.
        """
        if self.speakers is not None and name not in self.speakers.known:
            self.speakers.add(name, Place(self.counts.path, line, within))

    def error(self, text: str) -> DataError:
        """What is wrong with the line that was read last."""
        return DataError(self.path, text, self.end[1])

    def refuse(self, error: DataError, is_same: bool = False) -> None:
        """Leave out what cannot be read, if that is wanted.

        is_same (bool): Whether something else is wrong in the same episode, too.
        RAISES (DataError): What was given, if it is not.
        """
        if self.bad is None:
            raise error
        self.bad.add(error, is_same)

    @property
    def n_refused(self) -> int:
        """How much was left out so far."""
        return self.bad.n_problems if self.bad else 0

    def leave_out(self, kind: str, n_times: int = 1) -> None:
        """Count what is no part of an episode."""
        if self.left_out is not None:
            self.left_out[kind] += n_times
