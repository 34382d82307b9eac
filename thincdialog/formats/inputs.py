"""Read inputs of a model: rows of any format, each with the message to answer."""

from functools import partial
from itertools import chain, groupby
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from ..errors import DataError
from ..messages import PARTNER, SELF, SILENCE, Episode, Message, Turn
from .arrow_file import SUFFIXES, is_arrow, read_arrow
from .context import Bookmark, tolerating
from .conversations import Said, conversation_in, joined
from .formats import FORMATS, check_name
from .guessing import VALUES, format_by_name
from .json_layout import Part, conversation_of, examples_of, read_parts
from .layout_file import CorpusLayout, SystemTurns, find_layout, is_layout_file, shipped_layouts
from .records import Located, read_records
from .spellings import find_slip
from .tables import missing, read_table
from .text_file import LostLine, is_json_lines, json_object, read_lines, suffix_of
from .wording import kind, short

# Formats of files that need no layout; "jsonl" holds texts or conversations.
OF_PARLAI = ("parlai", "fbdialog", "babi")
TABLES = ("csv", "tsv")
INPUTS = ("text", "jsonl", *TABLES, *OF_PARLAI)
# Largest finite float32, because models read numbers of 32 bits.
LARGEST = 3.4028234663852886e38

# Makes an error from the description of a problem in a row.
Wrong = Callable[[str], DataError]


class InputRow(NamedTuple):
    """Hold one row and the message to answer.

    row (Dict[str, Any]): All fields of the row.
    message (Optional[Message]): The `text` of the row, with its `context`, `label_candidates` and
        `features`, if any. None if the row needs no answer: a line of text that is blank or cannot
        be read, or a turn of a conversation (if turns are rows) that is not the one to answer.
    """

    row: Dict[str, Any]
    message: Optional[Message]


class InputReading(NamedTuple):
    """Hold the settings for reading rows.

    format (Optional[str]): One of ``INPUTS``. If None, the file's suffix determines the format; if
        the suffix is unknown, the first line does: JSON lines or text.
    layout (Optional[CorpusLayout]): Layout of JSON and tables; None to use the other settings.
    system_turns (str): With a layout, see `thincdialog.JSONLayout.v1`.
    text_field (str): Without a layout, field or column of the text.
    label_speaker (Optional[str]): In conversations, the speaker whose turns are the model's own.
        None for the layout's label speaker, or without a layout for all speakers except the last.
    columns (Optional[Sequence[str]]): Column names of a table that has no header.
    delimiter (Optional[str]): Delimiter of a table, see ``read_table``.
    taken (Sequence[str]): Field names that a row must not have, because the answers use them.
    n_features (Optional[int]): Number of features that the model reads instead of text; 0 if it
        reads text, None if that is not known.
    other_fields (bool): Whether the model reads further fields of a row, of any kind.
    classes (Optional[FrozenSet[str]]): Classes of the model, if it has classes.
    may_have_header (bool): See ``read_table``.
    """

    format: Optional[str] = None
    layout: Optional[CorpusLayout] = None
    system_turns: SystemTurns = "context"
    text_field: str = "text"
    label_speaker: Optional[str] = None
    columns: Optional[Sequence[str]] = None
    delimiter: Optional[str] = None
    taken: Sequence[str] = ()
    n_features: Optional[int] = None
    other_fields: bool = False
    classes: Optional[FrozenSet[str]] = None
    may_have_header: bool = False


def layout_of(name: str) -> Optional[CorpusLayout]:
    """Return the layout that a format's name refers to; None if it is one of ``INPUTS``.

    name (str): Such as "csv", "sharegpt" or "my.yml".
    RAISES (DialogError): If there is no such format.
    """
    if name in INPUTS:
        return None
    if not is_layout_file(name):
        check_name(name, [*INPUTS, *shipped_layouts()])
    return find_layout(name)


def has_records(source: Any) -> bool:
    """Return whether a source may hold records: JSON, YAML or a table by a file's suffix, or rows
    that are not in a file."""
    known = (".csv", ".tsv", *VALUES, *SUFFIXES)
    return not isinstance(source, str) or suffix_of(source) in known


def format_of(path: str, reading: InputReading) -> Optional[str]:
    """Return the format of a file; None if its first line determines it."""
    found = reading.format or format_by_suffix(path)
    return found or ("jsonl" if reading.layout is not None else None)


def format_by_suffix(path: str) -> Optional[str]:
    """Return the format of a file of rows or answers by its suffix: csv, tsv, jsonl or None."""
    return format_by_name(path) or ("jsonl" if is_json_lines(path) else None)


def check_format(path: str, form: Optional[str], reading: InputReading) -> None:
    """Check that a file can hold inputs of the model.

    form (Optional[str]): Format of the file; None if that is not known yet.
    RAISES (DataError): If the file cannot hold features, but the model reads features.
    """
    holds = "a layout" if reading.layout is not None else f"the format '{form}'"
    if reading.n_features and (reading.layout is not None or form not in (None, "jsonl")):
        text = f"{holds} holds text, but this model reads {reading.n_features} features"
        raise DataError(path, f"{text}: give JSON lines with 'features'")


def read_inputs(path: str, reading: InputReading, at: Bookmark) -> Iterator[InputRow]:
    """Yield the rows of a file in order. Line n of a text file is row n, even if it is blank.

    path (str): The file, plain or gzip-compressed; "-" for standard input.
    at (Bookmark): Bookmark at the beginning; collects errors of rows that cannot be read.
    RAISES (DataError): If the file cannot be read, or a row cannot be read and must not be left
        out.
    """
    form, is_empty = format_of(path, reading), True
    check_format(path, form, reading)
    for row in _rows_of(path, form, reading, at):
        is_empty, names = False, at.columns or reading.columns or ()
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(path, f"{names.count(twice)} columns are called '{twice}'", 1)
        yield row
    if reading.layout is not None and is_empty and not at.n_refused:
        raise DataError(path, "holds no record that fits the data's layout: name another layout")


def _rows_of(
    path: str, form: Optional[str], reading: InputReading, at: Bookmark
) -> Iterator[InputRow]:
    """Return the rows of a file in a known format, or in the format of its first line."""
    columns, delimiter = reading.columns, reading.delimiter
    if reading.layout is not None:
        records = read_records(path, reading.layout, at, None, columns, delimiter)
        return _of_layout(records, reading, at)
    if form in OF_PARLAI:
        return _of_parlai(path, form, reading, at)
    if form in TABLES:
        fields, may_have_header = (reading.text_field,), reading.may_have_header
        table = read_table(path, at, columns, fields, delimiter, may_have_header)
    elif is_arrow(path):
        at.path, table = path, _numbered(read_arrow(path, as_json=True), at)
    else:
        return _of_lines(path, form, reading, at)
    return at.try_each(lambda numbered: input_row(numbered[1], reading, at), table)


def _of_lines(
    path: str, form: Optional[str], reading: InputReading, at: Bookmark
) -> Iterator[InputRow]:
    """Yield rows of text or JSON lines. If the format is not known, the first line that is not
    blank determines it."""
    lines, head = read_lines(path, at, with_lost=True), list[Tuple[int, str]]()
    while form is None and (numbered := next(lines, None)) is not None:
        head.append(numbered)
        if _is_not_blank(numbered[1]):
            form = "jsonl" if numbered[1].lstrip().startswith("{") else "text"
            check_format(path, form, reading)
    for number, line in chain(head, lines):
        if isinstance(line, LostLine):
            at.refuse(line.error)
        if form == "jsonl" and _is_not_blank(line):
            try:
                yield input_row(json_object(path, number, line), reading, at)
            except DataError as error:
                at.refuse(error)
        elif form != "jsonl":
            message = Message(text=line) if _is_not_blank(line) else None
            yield InputRow({reading.text_field: str(line)}, message)


def _is_not_blank(line: str) -> bool:
    return not isinstance(line, LostLine) and line != "" and not line.isspace()


def _of_parlai(path: str, form: str, reading: InputReading, at: Bookmark) -> Iterator[InputRow]:
    """Yield every turn of ParlAI's formats, with the turns before it."""
    episodes = iter(FORMATS[form](path, at=at))
    while True:
        # Only while an episode is read: other code may read labelled data between rows.
        with tolerating(unlabelled=True):
            episode = next(episodes, None)
        if episode is None:
            return
        rows = [{name: value for name, value in one.items() if name != "id"} for one in episode]
        rows = [{"id": row.pop("source_id"), **row} if "source_id" in row else row for row in rows]
        pairs = zip(rows, _messages_with_context(episode))
        yield from at.try_each(lambda pair: _checked(*pair, reading, at.error), pairs)


def _messages_with_context(episode: Episode) -> Iterator[Message]:
    """Yield a message for each example of an episode, with the turns before it."""
    history: List[Turn] = []
    for example in episode:
        message = Message(text=example["text"], context=list(history))
        if "label_candidates" in example:
            message["label_candidates"] = example["label_candidates"]
        yield message
        history.append((PARTNER, example["text"]))
        history += ((SELF, label) for label in example.get("labels", ())[:1])


# --- corpora of any layout ----------------------------------------------------------------


def _of_layout(
    records: Iterator[Located], reading: InputReading, at: Bookmark
) -> Iterator[InputRow]:
    """Yield the rows of each conversation or episode: one, unless its rows are turns."""
    assert reading.layout is not None
    make = partial(_turn_rows if reading.layout.is_conversation else _texts, reading=reading)
    for rows in read_parts(records, reading.layout, at, make):
        yield from rows


def _turn_rows(
    part: Part, layout: CorpusLayout, at: Bookmark, reading: InputReading
) -> List[InputRow]:
    """Return the rows of a conversation. Only one of them has a message: the row with the turn to
    answer, or the last row."""
    conversation, rows = conversation_of(part, layout, at), part.rows
    wrong = partial(_wrong, rows[0])
    speaker = reading.label_speaker or layout.label_speaker
    message, n_turns = _last_turn(conversation.said, speaker, conversation.background, wrong)
    if conversation.system and reading.system_turns != "drop":
        message["system"] = "\n".join(conversation.system)
    if reading.system_turns == "context":
        before = [(PARTNER, text) for text in conversation.system]
        message["context"] = [*before, *message["context"]]
    last = conversation.turns[n_turns - 1] if layout.group else rows[-1]
    return [
        _checked(_fields(row), message, reading, partial(_wrong, row))
        if row is last
        else InputRow(_fields(row), None)
        for row in rows
    ]


def _texts(part: Part, layout: CorpusLayout, at: Bookmark, reading: InputReading) -> List[InputRow]:
    """Return the row of an episode of examples, whose last text is answered."""
    with tolerating(unlabelled=True):
        episode = examples_of(part, layout, at)
    wrong = partial(_wrong, part.rows[0])
    if not episode:
        raise wrong("has no text to answer")
    *_, message = _messages_with_context(episode)
    return [_checked(_fields(part.rows[0]), message, reading, wrong)]


def _fields(record: Located) -> Dict[str, Any]:
    """Return the fields of a record. Fields of a list are its elements, named as in a layout."""
    value = record.value
    if isinstance(value, list):
        return {str(number): each for number, each in enumerate(value)}
    return dict(value) if isinstance(value, dict) else {"text": value}


def _wrong(record: Located, text: str) -> DataError:
    return DataError(record.path, text, record.line)


# --- rows ---------------------------------------------------------------------------------


def given_inputs(rows: Iterable[Any], reading: InputReading, at: Bookmark) -> Iterator[InputRow]:
    """Yield rows that are not in a file: texts, or mappings with the fields of JSON lines.

    at (Bookmark): Collects errors of rows that cannot be read.
    RAISES (TypeError): If a row is neither a string nor a mapping.
    """
    at.path = "rows"
    numbered = _numbered(rows, at)
    for is_text, some in groupby(numbered, lambda one: isinstance(one[1], str)):
        if is_text or reading.layout is None:
            found = ({reading.text_field: row} if is_text else dict(row) for _, row in some)
            yield from at.try_each(lambda row: input_row(row, reading, at), found)
        else:
            records = (Located(dict(row), "rows", number) for number, row in some)
            yield from _of_layout(records, reading, at)


def _numbered(rows: Iterable[Any], at: Bookmark) -> Iterator[Tuple[int, Any]]:
    for number, row in enumerate(rows, start=1):
        at.begin, at.end = number - 1, number
        if not isinstance(row, (str, Mapping)):
            raise TypeError(f"row {number} should be a string or a mapping, got {row!r}")
        yield number, row


# Fields of a row that are handled separately, or are not inputs.
_ROW_FIELDS = ("turns", "dialog", "label", "labels", "label_candidates")


def input_row(row: Dict[str, Any], reading: InputReading, at: Bookmark) -> InputRow:
    """Return a row with the message to answer.

    row (Dict[str, Any]): With a text, `features`, or the turns of a conversation.
    at (Bookmark): Position of the row.
    RAISES (DataError): If the row has nothing to answer, or is malformed.
    """
    message = Message()
    if "turns" in row or "dialog" in row:
        said = conversation_in(row, at).said
        message, _ = _last_turn(said, reading.label_speaker, (), at.error)
    elif row.get(reading.text_field) is not None or not (
        "features" in row or reading.n_features or reading.other_fields
    ):
        message["text"] = row.get(reading.text_field)
        if reading.text_field not in row:
            hint = "see --text-field" if at.has_flags else "set text_field"
            raise at.error(f"{missing(reading.text_field, row, 'field')}; {hint}")
        if not isinstance(message["text"], str):
            raise at.error(f"'{reading.text_field}' is {kind(message['text'])}, not a string")
    else:
        message["text"] = ""
    candidates = row.get("label_candidates")
    if isinstance(candidates, list):
        message["label_candidates"] = candidates
    if row.get("features") is not None:
        message["features"] = row["features"]
    if reading.other_fields:
        message.update({name: row[name] for name in row if name not in (*message, *_ROW_FIELDS)})
    return _checked(row, message, reading, at.error)


def _checked(
    row: Dict[str, Any], message: Message, reading: InputReading, wrong: Wrong
) -> InputRow:
    """Check that the model can use a row and its message, and return both."""
    problem = _problem(row, message, reading)
    if problem:
        raise wrong(problem)
    return InputRow(row, message)


def _problem(row: Dict[str, Any], message: Message, reading: InputReading) -> str:
    """Describe the first problem of a row and its message; "" if there is none."""
    taken = next((name for name in reading.taken if name in row), None)
    if taken is not None:
        return f"already has a field '{taken}': rename the answer's field with --prefix NAME"
    candidates, features = message.get("label_candidates"), message.get("features")
    if candidates is not None:
        if not candidates or not all(isinstance(text, str) for text in candidates):
            return "'label_candidates' must be a list of one or more strings"
        if reading.classes is not None and reading.classes.isdisjoint(candidates):
            found = ", ".join(map(short, candidates[:3]))
            return f"none of 'label_candidates' is a class of the model: {found}"
    if features is not None and not reading.other_fields:
        is_list = isinstance(features, list)
        if not is_list or not all(isinstance(value, (int, float)) for value in features):
            return "'features' must be a list of numbers"
        # The comparison is negated so that it finds NaN, too.
        bad = next((value for value in features if not abs(value) <= LARGEST), None)
        if bad is not None:
            return f"'features' must be finite 32-bit numbers, got {bad}"
    expected = reading.n_features
    if expected == 0 and features is not None:
        return "has features, but this model reads text: leave them out"
    if expected and message["text"]:
        found = f"has a text ({short(message['text'])})"
        return f"{found}, but this model reads {expected} features: leave it out"
    if expected and (features is None or len(features) != expected):
        n_found = "no" if features is None else str(len(features))
        return f"has {n_found} features, but this model reads {expected}"
    return ""


def _last_turn(
    said: Sequence[Said], label_speaker: Optional[str], background: Sequence[str], wrong: Wrong
) -> Tuple[Message, int]:
    """Return the last turn that is not the model's own, with the turns before it as context, and
    the number of turns up to and including this turn. Neighbouring turns of the same side are
    joined. The model's turns after the last turn are labels, and are ignored."""
    speakers = [who for who, _ in said]
    if label_speaker in ("first", "second"):
        sides = enumerate(groupby(speakers))
        is_own = [n % 2 == (label_speaker == "second") for n, (_, side) in sides for _ in side]
    elif label_speaker in (None, "both"):
        is_own = [who != speakers[-1] for who in speakers]
    else:
        _, slip = find_slip(speakers, label_speaker)
        if slip:
            raise wrong(slip)
        is_own = [who == label_speaker for who in speakers]
    while is_own and is_own[-1]:
        is_own.pop()
    if not is_own:
        raise wrong("has no turn to answer")
    turns = [(SELF if own else PARTNER, text) for own, (_, text) in zip(is_own, said)]
    *before, (_, text) = joined([*((PARTNER, text) for text in background), *turns])
    context = [turn for turn in before if turn[1] != SILENCE]
    return Message(context=context, text=text), len(turns)
