"""Read numbered lines, the format of fbdialog and the bAbI tasks."""

from itertools import chain
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
    n_episodes, previous, is_bad = at.count, 0, False
    episode, statements, reward = list[Message](), list[str](), 0.0
    # The end of the file ends an episode as a line of a lower number does.
    for line_number, line in chain(read_lines(path, at, with_lost=True), [(0, "0 ")]):
        if not line or line.isspace():
            continue
        digits, _, rest = line.partition(" ")
        is_numbered = _is_number(digits)
        if is_numbered and int(digits) <= previous:
            at.leave_out(TRAILING, len(statements))
            if episode and not is_bad:
                yield episode
                n_episodes += 1
            at.before(n_episodes)
            at.lines, episode, statements, reward, is_bad = [], [], [], 0.0, False
        previous = int(digits) if is_numbered else previous
        try:
            if isinstance(line, LostLine):
                raise line.error
            if not is_numbered:
                raise at.error(f"expected a number, a space and a text, found {short(line)}")
            text, *cells = rest.split("\t")
            statements.append(text.strip().replace("\\n", "\n"))
            is_support = supporting and len(cells) < 3
            third = cells[1].strip() if len(cells) > 1 else ""
            reward += _reward(third, at) if third and not is_support else 0.0
            if cells and (cells[0] or tolerance().unlabelled):
                message = Message(id=f"{n_episodes}/{len(episode)}", text="\n".join(statements))
                if cells[0]:
                    message["labels"] = _split_list(cells[0])
                if third and is_support:
                    message["supporting"] = _support(third, at)
                elif reward:
                    message["reward"] = reward
                if len(cells) > 2 and cells[2]:
                    message["label_candidates"] = _split_list(cells[2])
                    check_candidates(message, path, line_number)
                episode.append(message)
                at.lines.append(line_number)
                statements, reward = [], 0.0
        except DataError as error:
            at.refuse(error, is_same=is_bad)
            # The whole episode is left out, because later questions may need this line.
            is_bad = True
    if not n_episodes:
        raise DataError(path, "holds no examples: no line has an answer after a tab")


def _split_list(cell: str) -> List[str]:
    return cell.replace("\\n", "\n").split("|")


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
