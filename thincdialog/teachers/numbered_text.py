"""Numbered lines, as fbdialog and the bAbI tasks have them."""

from collections import Counter
from functools import partial
from typing import Any, Dict, Iterable, Iterator, List, Optional, Union

from ..errors import DataError
from ..messages import Episode, Message
from ..registry import registry
from .arguments import candidate_file, file_sources
from .bookmark import Bookmark
from .reading import Line, PathOrPaths, check_candidates, read_lines, short
from .teacher import Teacher

TRAILING = "statements that no question follows"


@registry.teachers("thincdialog.NumberedText.v1")
def NumberedText(
    train: Optional[PathOrPaths] = None,
    dev: Optional[PathOrPaths] = None,
    test: Optional[PathOrPaths] = None,
    supporting: bool = True,
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
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one a line,
        numbered or not; `\\n` stands for a line end.
    streaming (bool): Read the files for every epoch instead of holding them.
    """
    return Teacher(
        file_sources(partial(read_numbered_text, supporting=supporting), train, dev, test),
        candidates=candidate_file(candidates, numbered=True),
        mutators=mutators,
        streaming=streaming,
    )


def read_numbered_text(
    path: str,
    supporting: bool = True,
    lines: Optional[Iterable[Line]] = None,
    left_out: Optional[Counter[str]] = None,
    at: Optional[Bookmark] = None,
) -> Iterator[Episode]:
    """The episodes of one file.

    path (str): The file.
    supporting (bool): What the third column is, see ``NumberedText``.
    lines (Optional[Iterable[Line]]): Its lines with their numbers, if they are at hand.
    left_out (Optional[Counter]): Counts what is no part of an episode, by its kind.
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
    for line_number, line in read_lines(path, at) if lines is None else lines:
        if not line or line.isspace():
            continue
        digits, _, rest = line.partition(" ")
        if not _is_number(digits):
            text = f"expected a number, a blank and a text, found {short(line)}"
            raise DataError(path, text, line_number)
        if int(digits) <= previous:
            if episode:
                yield episode
                n_episodes += 1
            at.before(n_episodes)
            if left_out is not None:
                left_out[TRAILING] += len(statements)
            episode, statements, reward = [], [], 0.0
        previous = int(digits)
        cells = rest.split("\t")
        statements.append(_unescaped(cells[0].strip()))
        third = cells[2].strip() if len(cells) > 2 else ""
        is_support = supporting and len(cells) < 4
        if third and not is_support:
            reward += _reward(third, path, line_number)
        if len(cells) > 1 and cells[1]:
            message = Message(
                id=f"{n_episodes}/{len(episode)}",
                text="\n".join(statements),
                labels=_unescaped(cells[1]).split("|"),
            )
            if third and is_support:
                message["supporting"] = _support(third, path, line_number)
            elif reward:
                message["reward"] = reward
            if len(cells) > 3 and cells[3]:
                message["label_candidates"] = _unescaped(cells[3]).split("|")
                check_candidates(message["labels"], message["label_candidates"], path, line_number)
            episode.append(message)
            statements, reward = [], 0.0
    if left_out is not None:
        left_out[TRAILING] += len(statements)
    if episode:
        yield episode
    elif not n_episodes:
        raise DataError(path, "holds no examples: no line has an answer behind a tab")


def _unescaped(cell: str) -> str:
    return cell.replace("\\n", "\n")


def _is_number(word: str) -> bool:
    # Python refuses to read numbers of thousands of digits.
    return word.isdecimal() and len(word) <= 18


def _support(cell: str, path: str, number: int) -> List[int]:
    words = cell.split()
    if not all(map(_is_number, words)):
        text = (
            f"the third column is {short(cell)}: expected numbers of supporting lines; "
            "set supporting = false if it is a reward"
        )
        raise DataError(path, text, number)
    return [int(word) for word in words]


def _reward(cell: str, path: str, number: int) -> float:
    try:
        return float(cell)
    except ValueError:
        text = (
            f"the third column is {short(cell)}: expected a reward; "
            "set supporting = true if it holds numbers of supporting lines"
        )
        raise DataError(path, text, number) from None
