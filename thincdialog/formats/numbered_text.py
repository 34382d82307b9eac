"""Numbered lines, as fbdialog and the bAbI tasks have them."""

from typing import Iterator, List, Optional

from ..errors import DataError
from ..messages import Episode, Message
from .bookmark import Bookmark
from .candidates import check_candidates
from .text_file import File, read_lines
from .wording import short

TRAILING = "statements that no question follows"


def read_numbered_text(
    path: File, supporting: bool = True, at: Optional[Bookmark] = None
) -> Iterator[Episode]:
    """The episodes of one file.

    path (File): The file.
    supporting (bool): What the third column is, see ``NumberedText``.
    at (Optional[Bookmark]): Lies where to begin, and is moved along.
    RAISES (DataError): With the line, if it breaks the format or has a label that is
        not among its candidates; without, if there is no question with an answer.
    """
    at = at or Bookmark()
    n_episodes = at.count
    previous = 0
    episode: Episode = []
    statements: List[str] = []
    reward = 0.0
    for line_number, line in read_lines(path, at):
        if not line or line.isspace():
            continue
        digits, _, rest = line.partition(" ")
        if not _is_number(digits):
            raise at.error(f"expected a number, a blank and a text, found {short(line)}")
        if int(digits) <= previous:
            if episode:
                yield episode
                n_episodes += 1
            at.before(n_episodes)
            at.leave_out(TRAILING, len(statements))
            episode, statements, reward = [], [], 0.0
        previous = int(digits)
        cells = rest.split("\t")
        statements.append(cells[0].strip().replace("\\n", "\n"))
        third = cells[2].strip() if len(cells) > 2 else ""
        is_support = supporting and len(cells) < 4
        if third and not is_support:
            reward += _reward(third, at)
        if len(cells) > 1 and cells[1]:
            message = Message(
                id=f"{n_episodes}/{len(episode)}",
                text="\n".join(statements),
                labels=cells[1].replace("\\n", "\n").split("|"),
            )
            if third and is_support:
                message["supporting"] = _support(third, at)
            elif reward:
                message["reward"] = reward
            if len(cells) > 3 and cells[3]:
                message["label_candidates"] = cells[3].replace("\\n", "\n").split("|")
                check_candidates(message, path, line_number)
            episode.append(message)
            statements, reward = [], 0.0
    at.leave_out(TRAILING, len(statements))
    if episode:
        yield episode
    elif not n_episodes:
        raise DataError(path, "holds no examples: no line has an answer behind a tab")


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


def numbered_lines(episode: Episode, name: str) -> List[str]:
    """An episode as fbdialog's and bAbI's numbered lines; the lines of a text before its
    last one are statements with a number of their own."""
    lines: List[str] = []
    for message in episode:
        *statements, question = message["text"].split("\n")
        # The reader takes blanks off both ends of a line: such a text keeps one line.
        if any(part != part.strip() for part in (*statements, question)):
            statements, question = [], message["text"].replace("\n", "\\n")
        answers, candidates = (
            "|".join(message.get(field, ())).replace("\n", "\\n")
            for field in ("labels", "label_candidates")
        )
        support = message.get("supporting")
        third = message.get("reward", "") if support is None else " ".join(map(str, support))
        cells = [question, answers, str(third), candidates]
        while not cells[-1] and len(cells) > 2:
            cells.pop()
        lines += [*statements, "\t".join(cells)]
    return [f"{number} {line}" for number, line in enumerate(lines, start=1)]
