"""What a model is to answer: rows of any format, each with the message that it stands for."""

from itertools import groupby
from operator import itemgetter
from typing import (
    Any,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
)

from ..errors import DataError, DialogError
from ..messages import PARTNER, SELF, SILENCE, Message, Turn
from .bookmark import Bookmark
from .conversations import SIDES, conversation_turns
from .formats import FORMATS
from .guessing import format_by_name
from .tables import missing, read_table
from .text_file import json_object, read_lines, suffix_of
from .tolerance import tolerating
from .wording import kind, nearest, short

# What a file can hold; "jsonl" are texts or conversations. The others end in turns of ParlAI.
INPUTS = ("text", "jsonl", "csv", "tsv", "parlai", "fbdialog", "babi")
TABLES = ("csv", "tsv")
# Of the numbers that a model can be given: it reads 32 bits.
LARGEST = 3.4028234663852886e38


class InputRow(NamedTuple):
    """One row, and what is to be answered.

    row (Dict[str, Any]): All that stands in it.
    message (Message): Its `text`, with `context`, `label_candidates` and `features` if it has.
    """

    row: Dict[str, Any]
    message: Message


class InputReading(NamedTuple):
    """How rows are read.

    format (Optional[str]): One of ``INPUTS``; if None, told by the file's name, and where that
        tells nothing by the first line: JSON lines or text.
    text_field (str): Field or column of the text.
    label_speaker (Optional[str]): In conversations, whose turns are the model's own; if None,
        those of everybody but the last speaker.
    columns (Optional[Sequence[str]]): Column names of a table that has no header.
    delimiter (Optional[str]): Of a table, see ``read_table``.
    taken (Sequence[str]): Names that a row must not have: they are for the answers.
    n_features (Optional[int]): How many numbers the model reads in place of text; 0 if it reads
        text, None if that is not known.
    classes (Optional[FrozenSet[str]]): Those of the model, if it has some.
    may_have_header (bool): See ``read_table``.
    """

    format: Optional[str] = None
    text_field: str = "text"
    label_speaker: Optional[str] = None
    columns: Optional[Sequence[str]] = None
    delimiter: Optional[str] = None
    taken: Sequence[str] = ()
    n_features: Optional[int] = None
    classes: Optional[FrozenSet[str]] = None
    may_have_header: bool = False


def format_of(path: str, reading: InputReading) -> Optional[str]:
    """The format of a file; None if its first line is to tell.

    RAISES (DialogError): If the given one is unknown.
    """
    if reading.format is not None and reading.format not in INPUTS:
        hint = nearest(reading.format, INPUTS) or f" (there are: {', '.join(INPUTS)})"
        raise DialogError(f"there is no format '{reading.format}'{hint}")
    is_json = suffix_of(path) in (".jsonl", ".json", ".ndjson")
    return reading.format or format_by_name(path) or ("jsonl" if is_json else None)


def read_inputs(path: str, reading: InputReading, at: Bookmark) -> Iterator[InputRow]:
    """The rows of a file, one after the other; blank lines are left out.

    path (str): The file, plain or gzip'd; "-" for what is piped in.
    at (Bookmark): Lies at the beginning; takes what cannot be read.
    RAISES (DataError): If the file, or a row where none may be left out, cannot be read.
    """
    form = format_of(path, reading)
    if form in ("parlai", "fbdialog", "babi"):
        yield from _episodes(path, form, reading, at)
        return
    for row in _table(path, reading, at) if form in TABLES else _lines(path, form, at, reading):
        try:
            yield input_row(row, reading, at)
        except DataError as error:
            at.refuse(error)


def _lines(
    path: str, form: Optional[str], at: Bookmark, reading: InputReading
) -> Iterator[Dict[str, Any]]:
    for number, line in read_lines(path, at):
        if not line or line.isspace():
            continue
        form = form or ("jsonl" if line.lstrip().startswith("{") else "text")
        try:
            row = {reading.text_field: line} if form == "text" else json_object(path, number, line)
        except DataError as error:
            at.refuse(error)
            continue
        yield row


def _table(path: str, reading: InputReading, at: Bookmark) -> Iterator[Dict[str, Any]]:
    fields = (reading.text_field,)
    columns, may_have_header = reading.columns, reading.may_have_header
    for _, row in read_table(path, at, columns, fields, reading.delimiter, may_have_header):
        names = at.columns or reading.columns or ()
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DataError(path, f"{names.count(twice)} columns are called '{twice}'", 1)
        yield row


def _episodes(path: str, form: str, reading: InputReading, at: Bookmark) -> Iterator[InputRow]:
    """Every turn of ParlAI's formats, with the turns before it."""
    episodes = iter(FORMATS[form].read(path, at=at))
    while True:
        # Only while something is read: between rows others may read with labels.
        with tolerating(unlabelled=True):
            episode = next(episodes, None)
        if episode is None:
            return
        history: List[Turn] = []
        for message in episode:
            row = {name: value for name, value in message.items() if name != "id"}
            if "source_id" in row:
                row = {"id": row.pop("source_id"), **row}
            _check_taken(row, reading, at)
            asked = Message(text=message["text"], context=list(history))
            if "label_candidates" in message:
                asked["label_candidates"] = message["label_candidates"]
            _check_input(asked, reading, at)
            yield InputRow(row, asked)
            history.append((PARTNER, message["text"]))
            history += [(SELF, label) for label in message.get("labels", ())[:1]]


def given_inputs(rows: Iterable[Any], reading: InputReading, at: Bookmark) -> Iterator[InputRow]:
    """Rows that stand in no file: texts, or mappings as JSON lines hold them.

    at (Bookmark): Takes what cannot be read.
    RAISES (TypeError): If one is something else.
    """
    at.path = "rows"
    for number, row in enumerate(rows, start=1):
        at.begin, at.end = at.end, (0, number)
        if not isinstance(row, (str, Mapping)):
            raise TypeError(f"row {number} should be a string or a mapping, got {row!r}")
        try:
            whole = {reading.text_field: row} if isinstance(row, str) else dict(row)
            yield input_row(whole, reading, at)
        except DataError as error:
            at.refuse(error)


def input_row(row: Dict[str, Any], reading: InputReading, at: Bookmark) -> InputRow:
    """A row with the message that it stands for.

    row (Dict[str, Any]): With a text, `features`, or the turns of a conversation.
    at (Bookmark): Where it was read.
    RAISES (DataError): If there is nothing to answer in it.
    """
    _check_taken(row, reading, at)
    message = Message()
    if "turns" in row or "dialog" in row:
        message["context"], message["text"] = _said(row, reading.label_speaker, at)
    elif reading.text_field in row or ("features" not in row and not reading.n_features):
        message["text"] = row.get(reading.text_field)
        if reading.text_field not in row:
            raise at.error(f"{missing(reading.text_field, row, 'field')}; see --text-field")
        if not isinstance(message["text"], str):
            raise at.error(f"'{reading.text_field}' is {kind(message['text'])}, not a string")
    else:
        message["text"] = ""
    candidates = row.get("label_candidates")
    if isinstance(candidates, list):
        if not candidates or not all(isinstance(text, str) for text in candidates):
            raise at.error("'label_candidates' must be a list of strings, one or more")
        if reading.classes is not None and reading.classes.isdisjoint(candidates):
            found = ", ".join(map(short, candidates[:3]))
            raise at.error(f"none of 'label_candidates' is a class of the model: {found}")
        message["label_candidates"] = candidates
    features = row.get("features")
    if features is not None:
        is_numbers = isinstance(features, list) and all(
            isinstance(value, (int, float)) for value in features
        )
        if not is_numbers:
            raise at.error("'features' must be a list of numbers")
        # Compared this way around, NaN is none either.
        bad = next((value for value in features if not abs(value) <= LARGEST), None)
        if bad is not None:
            raise at.error(f"'features' must be finite numbers of 32 bits, got {bad}")
        message["features"] = features
    _check_input(message, reading, at)
    return InputRow(row, message)


def _check_input(message: Message, reading: InputReading, at: Bookmark) -> None:
    expected = reading.n_features
    if expected is None:
        return
    features = message.get("features")
    if features is not None and not expected:
        raise at.error("has features, but this model reads text: leave them out")
    if expected and message["text"]:
        found = f"has a text ({short(message['text'])})"
        raise at.error(f"{found}, but this model reads {expected} features: leave it out")
    if expected and (features is None or len(features) != expected):
        found = "no" if features is None else str(len(features))
        raise at.error(f"has {found} features, but this model reads {expected}")


def _check_taken(row: Mapping[str, Any], reading: InputReading, at: Bookmark) -> None:
    taken = next((name for name in reading.taken if name in row), None)
    if taken is not None:
        raise at.error(f"has a field '{taken}' of its own: --prefix NAME renames the answer's")


def _said(row: Dict[str, Any], label_speaker: Optional[str], at: Bookmark) -> Any:
    """The turns before the last, and the text of that; neighbours of one side are joined."""
    turns = [(who, text) for who, text, _ in conversation_turns(row, at) if who is not None]
    if not turns:
        raise at.error("has no turn that could be answered")
    last = turns[-1][0]
    own = None if label_speaker in SIDES else label_speaker
    if own is not None and last == own:
        raise at.error(f"ends with a turn of label_speaker '{own}': nobody waits for an answer")
    roles = [
        (SELF if (who == own if own is not None else who != last) else PARTNER, text)
        for who, text in turns
    ]
    joined = [
        (role, "\n".join(text for _, text in side)) for role, side in groupby(roles, itemgetter(0))
    ]
    return [turn for turn in joined[:-1] if turn[1] != SILENCE], joined[-1][1]
