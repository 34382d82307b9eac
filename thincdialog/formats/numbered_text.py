"""Read numbered lines, the format of fbdialog and the bAbI tasks."""

from typing import Iterator, List, Optional

from ..errors import DataError
from ..messages import Episode, Message
from .candidates import check_candidates
from .context import Bookmark, tolerance
from .text_file import File, LostLine, read_lines
from .wording import short

TRAILING = "statements after the last question"


def read_numbered_text(
    path: File, supporting: bool = True, at: Optional[Bookmark] = None
) -> Iterator[Episode]:
    """Yield the episodes of one file.

    path (File): The file.
    supporting (bool): Meaning of the third column, see ``NumberedText``.
    at (Optional[Bookmark]): Position to begin at; moved along.
    RAISES (DataError): With the line, if it breaks the format or has a label that is
        not among its candidates; without, if there is no question with an answer.
    """
    at = at or Bookmark()
    n_episodes = at.count
    previous, is_bad = 0, False
    reading = _Episode(supporting, at)
    for line_number, line in read_lines(path, at, with_lost=True):
        if not line or line.isspace():
            continue
        digits, _, rest = line.partition(" ")
        is_numbered = _is_number(digits)
        if is_numbered and int(digits) <= previous:
            if reading.end() and not is_bad:
                yield reading.episode
                n_episodes += 1
            at.before(n_episodes)
            reading, is_bad = _Episode(supporting, at), False
        previous = int(digits) if is_numbered else previous
        try:
            if isinstance(line, LostLine):
                raise line.error
            if not is_numbered:
                raise at.error(f"expected a number, a space and a text, found {short(line)}")
            reading.add(rest, f"{n_episodes}/{len(reading.episode)}", path, line_number)
        except DataError as error:
            at.refuse(error, is_same=is_bad)
            # The whole episode is left out, because later questions may need this line.
            is_bad = True
    if reading.end() and not is_bad:
        yield reading.episode
    elif not n_episodes:
        raise DataError(path, "holds no examples: no line has an answer after a tab")


class _Episode:
    """Collect the lines of an episode.

    supporting (bool): Meaning of the third column, see ``NumberedText``.
    at (Bookmark): Position of the reader.

    episode (Episode): The questions so far.
    """

    def __init__(self, supporting: bool, at: Bookmark):
        self.supporting, self.at = supporting, at
        self.episode: Episode = []
        self._statements: List[str] = []
        self._reward = 0.0
        at.lines = []

    def add(self, rest: str, name: str, path: File, line: int) -> None:
        """Add a line: a statement or a question.

        rest (str): The line without its number.
        name (str): Id of the question, if the line is a question.
        path (File): The file.
        line (int): Position of the line in the file, from 1.
        RAISES (DataError): If the line breaks the format.
        """
        cells = rest.split("\t")
        self._statements.append(cells[0].strip().replace("\\n", "\n"))
        third = cells[2].strip() if len(cells) > 2 else ""
        is_support = self.supporting and len(cells) < 4
        if third and not is_support:
            self._reward += _reward(third, self.at)
        is_question = len(cells) > 1 and (cells[1] or tolerance().unlabelled)
        if not is_question:
            return
        message = Message(id=name, text="\n".join(self._statements))
        if cells[1]:
            message["labels"] = cells[1].replace("\\n", "\n").split("|")
        if third and is_support:
            message["supporting"] = _support(third, self.at)
        elif self._reward:
            message["reward"] = self._reward
        if len(cells) > 3 and cells[3]:
            message["label_candidates"] = cells[3].replace("\\n", "\n").split("|")
            check_candidates(message, path, line)
        self.episode.append(message)
        self.at.lines.append(line)
        self._statements, self._reward = [], 0.0

    def end(self) -> bool:
        """Count the statements after the last question.

        RETURNS (bool): Whether the episode has a question.
        """
        self.at.leave_out(TRAILING, len(self._statements))
        return bool(self.episode)


def _is_number(word: str) -> bool:
    # Python refuses to read numbers of thousands of digits.
    return word.isdecimal() and len(word) <= 18


def _support(cell: str, at: Bookmark) -> List[int]:
    words = cell.split()
    if not all(map(_is_number, words)):
        text = f"the third column is {short(cell)}: expected numbers of supporting lines"
        raise at.error(f"{text}; set supporting = false if it is a reward")
    return [int(word) for word in words]


def _reward(cell: str, at: Bookmark) -> float:
    try:
        return float(cell)
    except ValueError:
        text = f"the third column is {short(cell)}: expected a reward"
        hint = "set supporting = true if it holds numbers of supporting lines"
        raise at.error(f"{text}; {hint}") from None
