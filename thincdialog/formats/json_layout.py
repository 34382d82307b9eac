"""Read corpora in JSON or tables as a layout describes them."""

import re
from contextlib import suppress
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from functools import partial
from html import unescape
from itertools import groupby
from operator import itemgetter
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..errors import DataError
from ..messages import Episode, Message
from .candidates import check_candidates
from .context import NEEDS_LABEL, Bookmark, tolerance
from .conversations import Conversation, Said, spoken_episodes
from .layout_file import AS_IN_FILE, NEWEST_FIRST, CorpusLayout, SystemTurns
from .records import Located, read_records
from .tables import missing
from .wording import short

# Examples that cannot be used for training.
NOTHING = "examples without a text or a label"

# Fields with a model's calls of tools; a turn that has one needs no text.
CALLS = ("tool_calls", "function_call")

_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?")
# Tags of HTML that end a line, and all tags.
_LINE_END = re.compile(r"\s*<(?:br|/p|/div|/li)\b[^>]*>\s*(?!\Z)", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^>]*>|<!--.*?-->", re.IGNORECASE | re.DOTALL)


class Part(NamedTuple):
    """Hold one conversation or episode: its name; its rows (one, unless rows are turns) in the
    order of the file; and its turns or examples."""

    name: str
    rows: List[Located]
    places: List[Located]


def read_layout_file(
    path: str,
    layout: CorpusLayout,
    split: str = "train",
    label_speaker: Optional[str] = None,
    columns: Optional[Sequence[str]] = None,
    delimiter: Optional[str] = None,
    at: Optional[Bookmark] = None,
    system_turns: SystemTurns = "context",
    label_field: Optional[str] = None,
) -> Iterator[Episode]:
    """Yield the episodes of one file.

    path (str): The file.
    layout (CorpusLayout): Layout of the file.
    split (str): The split, if one file holds several.
    label_speaker (Optional[str]): Speaker whose turns are the labels; None for the layout's label
        speaker.
    columns (Optional[Sequence[str]]): Column names of a table that has no header.
    delimiter (Optional[str]): Delimiter of a table, see ``read_table``.
    at (Optional[Bookmark]): Position to begin at; moved along, unless the file is one value.
    system_turns (str): "context", "field" or "drop", see `thincdialog.JSONLayout.v1`.
    label_field (Optional[str]): In conversations, the place of the label of a text, see
        ``convert``. Each text that is not the label speaker's becomes a separate example.
    RAISES (DataError): With the line and the place in it, if a value is missing.
    """
    at = at or Bookmark()
    at.leave_out("names of speakers", layout.is_conversation and bool(layout.speaker))
    at.leave_out("fields that the layout does not name")
    records = read_records(path, layout, at, split, columns, delimiter)
    speaker = label_speaker or layout.label_speaker
    if not layout.is_conversation:
        is_empty = at.is_at_begin
        at.counts.unit = "episodes" if layout.examples else "examples"
        for episode in filter(None, read_parts(records, layout, at, examples_of)):
            is_empty = False
            yield episode
        if is_empty:
            raise DataError(path, "holds no examples")
    elif label_field:
        make = partial(labelled_texts, answers=speaker, label_field=label_field)
        for episode in read_parts(records, layout, at, make):
            yield from ([message] for message in episode)
    else:
        conversations = read_parts(records, layout, at, conversation_of)
        yield from spoken_episodes(conversations, speaker, path, at, system_turns)


def read_parts(
    records: Iterator[Located], layout: CorpusLayout, at: Bookmark, make: Callable[..., Any]
) -> Iterator[Any]:
    """Yield the result of `make` for each conversation or episode that can be read.

    make (Callable): Called with a ``Part``, the layout and the bookmark.
    """
    names: Set[str] = set()  # Names of groups; those before the bookmark are not known.

    def made(numbered: Tuple[int, List[Located]]) -> Any:
        number, rows = numbered
        if not layout.group:
            at.before(number)
        return make(_named(number, rows, layout, names), layout, at)

    return at.try_each(made, enumerate(_parts(records, layout, at), start=at.count))


def _parts(
    records: Iterator[Located], layout: CorpusLayout, at: Bookmark
) -> Iterator[List[Located]]:
    """Yield the rows of each conversation or episode."""
    if layout.only and not layout.turns:
        records = (record for record in records if _is_wanted(record, layout))
    if layout.order and layout.group:
        yield from _sorted_groups(records, layout, at)
    elif layout.group:
        yield from _groups(records, layout, at)
    elif layout.each:
        for elements in at.try_each(partial(_elements, where=layout.each), records):
            yield from ([element] for element in elements)
    else:
        yield from ([record] for record in records)


def _is_wanted(found: Located, layout: CorpusLayout) -> bool:
    values = ((found.get(place, None), text) for place, text in (layout.only or {}).items())
    return all(value is not None and fnmatchcase(str(value), text) for value, text in values)


def _elements(record: Located, where: str) -> List[Located]:
    """Return the elements of the list at a place of a record, or the lines of the text there."""
    found = record.find(where)
    if isinstance(found.value, str):
        found = found._replace(value=[line for line in found.value.split("\n") if line.strip()])
    return [element._replace(record=record) for element in found.items()]


def _sorted_groups(
    rows: Iterator[Located], layout: CorpusLayout, at: Bookmark
) -> Iterator[List[Located]]:
    """Yield the rows of each group in the order of its turns. The rows of a group may be anywhere
    in the file, so all rows are in memory at once."""
    groups: Dict[str, List[Located]] = {}
    for name, row in at.try_each(lambda row: (_group(row, layout), row), rows):
        groups.setdefault(name, []).append(row)
    yield from at.try_each(partial(_sorted, layout=layout), groups.values())


def _sorted(rows: List[Located], layout: CorpusLayout) -> List[Located]:
    if layout.order in (AS_IN_FILE, NEWEST_FIRST):
        return rows if layout.order == AS_IN_FILE else rows[::-1]
    timed = [(_sort_key(row.find(layout.order), layout), row) for row in rows]
    # Rows with the same time keep the order of the file, reversed if its newest rows come first.
    timed = timed[::-1] if timed and timed[0][0] > timed[-1][0] else timed
    return [row for _, row in sorted(timed, key=itemgetter(0))]


def _sort_key(found: Located, layout: CorpusLayout) -> float:
    """Return the number or time by which a row is sorted.

    RAISES (DataError): If the value is neither a number nor a date.
    """
    value = found.value
    try:
        if isinstance(value, str) and layout.date_format:
            value = datetime.strptime(value.strip(), layout.date_format)
        elif isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
            value = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        if isinstance(value, datetime):
            # Times without a zone are assumed to be in the same zone, so any zone gives the same
            # order.
            return (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()
        return float(value)
    except (TypeError, ValueError):
        wanted = layout.date_format or "a number, or a date such as 2024-05-31 10:15"
        hint = "" if layout.date_format else " (for other dates, set 'date_format' in the layout)"
        raise found.error(f"is {short(found.value)}: expected {wanted}{hint}") from None


def _group(row: Located, layout: CorpusLayout) -> str:
    """Return the name of a row's group.

    RAISES (DataError): If the row has no group.
    """
    found = row.find(layout.group)
    if found.value in (None, ""):
        raise found.error("is empty, so the conversation or episode of this row is unknown")
    return str(found.value)


def _groups(rows: Iterator[Located], layout: CorpusLayout, at: Bookmark) -> Iterator[List[Located]]:
    """Yield the rows of each group that is complete, because a group without one of its rows would
    be a different conversation. A row that was lost between two groups may belong to either, so
    both groups are left out."""
    n_groups = 0  # Errors of whole groups, which are not lost rows.
    n_before = at.n_refused
    keyed = at.try_each(lambda row: (_group(row, layout), row, at.n_refused - n_groups), rows)
    for number, (_, group) in enumerate(groupby(keyed, itemgetter(0)), start=at.count):
        # At this point, only the first row of the group has been read.
        at.before(number)
        _, found, n_lost = zip(*group)
        if n_before == n_lost[0] == at.n_refused - n_groups:
            n_refused = at.n_refused
            yield list(found)
            n_groups += at.n_refused - n_refused
        n_before = n_lost[-1]


def _named(number: int, rows: List[Located], layout: CorpusLayout, names: Set[str]) -> Part:
    """Give a conversation or episode its name, and find its turns or examples."""
    first = rows[0]
    if layout.group:
        found = first.find(layout.group)
        name = str(found.value)
        if name in names:
            text = f"is {found.value!r} again: rows of one conversation must be consecutive, "
            text += "unless the layout has an 'order'"
            raise found.error(text)
        names.add(name)
        return Part(name, rows, _in_order(rows, layout))
    given = first.get(layout.id, None) if layout.id else None
    name = str(number if given is None else given)
    inner = layout.turns or layout.examples
    places = list(first.find(inner).items()) if inner else rows
    return Part(name, rows, _sorted(places, layout) if layout.order else places)


def _in_order(rows: List[Located], layout: CorpusLayout) -> List[Located]:
    """Return the rows of a group, each directly after the row that it answers."""
    if not layout.reply_to:
        return rows
    names = {str(row.get(layout.turn_id)) for row in rows}
    answers: Dict[Optional[str], Located] = {}
    for row in rows:
        target = row.find(layout.reply_to, None)
        # A row that answers no row of this group comes first.
        key = str(target.value) if str(target.value) in names else None
        if key in answers:
            what = "a second answer to the same turn" if key is not None else "a second beginning"
            raise target.error(f"makes this {what}: a conversation cannot branch")
        answers[key] = row
    ordered: List[Located] = []
    key = None
    while key in answers:
        ordered.append(answers.pop(key))
        key = str(ordered[-1].get(layout.turn_id))
    if answers:
        row = next(iter(answers.values()))
        raise row.find(layout.reply_to, None).error("is part of a cycle, so no turn is the first")
    return ordered


def conversation_of(part: Part, layout: CorpusLayout, at: Bookmark) -> Conversation:
    """Return the conversation of a part's turns."""
    said: List[Said] = []
    spoken: List[Located] = []
    system: List[str] = []
    context_only: List[int] = []
    for turn in part.places:
        if layout.turns and not _is_wanted(turn, layout):
            continue
        is_call = any(turn.get(call, None) for call in CALLS)
        if is_call and not any(turn.get(place, None) for place in layout.text_places):
            at.leave_out("tool calls without a text")
            continue
        text = _text(turn, layout, at)
        if layout.skip and re.search(layout.skip, text):
            at.leave_out("turns that the layout skips")
            continue
        speaker = _speaker(turn, layout) if layout.speaker else str(len(said) % 2 + 1)
        if speaker not in (layout.background_speakers or ()):
            if layout.weight and turn.get(layout.weight, None) == 0:
                context_only.append(len(said))
            said.append((speaker, text))
            spoken.append(turn)
        elif said:
            at.leave_out("turns of a system or tool within conversations")
        elif text:
            system.append(text)
    background = _background(part.rows[0], layout)
    return Conversation(part.name, said, background, system, spoken, context_only)


def _speaker(turn: Located, layout: CorpusLayout) -> str:
    """Return the speaker's role, if the layout has one for the speaker; otherwise the name."""
    found = turn.get(layout.speaker)
    name = str(found) if type(found) is int else _decoded_again(turn.text(layout.speaker), layout)
    if not name.strip():
        raise turn.find(layout.speaker).error("is empty, so the speaker is unknown")
    for role, names in (layout.speakers or {}).items():
        if any(fnmatchcase(name.strip().lower(), one.lower()) for one in names):
            return role
    return name


def labelled_texts(
    part: Part, layout: CorpusLayout, at: Bookmark, answers: str, label_field: str
) -> Episode:
    """Return the texts of a conversation that have a label in their own turn, in the answer to it
    or, for the last text, in the record.

    answers (str): The speaker who answers.
    """
    name, rows, turns = part
    speakers = [_speaker(turn, layout) for turn in turns]
    others = (answers, *(layout.background_speakers or ()))
    asked = [number for number, speaker in enumerate(speakers) if speaker not in others]
    episode: Episode = []
    for number in asked:
        turn, is_answered = turns[number], speakers[number + 1 : number + 2] == [answers]
        places = [turn, *turns[number + 1 : number + 1 + is_answered]]
        places += rows if number == asked[-1] else []
        found = (place.find(label_field, None) for place in places)
        label = next((one for one in found if one.value not in (None, "", [])), None)
        if label is None:
            at.leave_out(f"texts without '{label_field}'")
            continue
        text, labels = _text(turn, layout, at), _texts(label, layout)
        episode.append(Message(id=f"{name}/{number}", text=text, labels=labels))
    return episode


def examples_of(part: Part, layout: CorpusLayout, at: Bookmark) -> Episode:
    """Return the episode of a part's examples."""
    episode: Episode = []
    at.lines = [place.line for place in part.places]
    for place in part.places:
        message = Message(id=f"{part.name}/{len(episode)}", text=_text(place, layout, at))
        label = place.find(layout.label, None if tolerance().unlabelled else ...)
        has_all = message["text"].strip() or layout.background or layout.examples
        has_all = has_all and (label.value != "" or tolerance().empty_labels)
        if not has_all and not tolerance().unlabelled:
            at.counts.n_read, at.counts.n_without = at.counts.n_read + 1, at.counts.n_without + 1
            at.leave_out(NOTHING)
            continue
        if tolerance().empty_labels and label.value in ("", []):
            message["labels"] = []
        elif label.value not in (None, "", []) or not tolerance().unlabelled:
            message["labels"] = _texts(label, layout)
            if not message["labels"]:
                raise label.error(f"is an empty list: {NEEDS_LABEL}")
        if layout.label_candidates:
            found = place.find(layout.label_candidates)
            message["label_candidates"] = _texts(found, layout)
            check_candidates(message, found.path, found.line)
        episode.append(message)
    opening = _background(part.rows[0], layout)
    if opening and episode:
        episode[0]["text"] = "\n".join([*opening, episode[0]["text"]])
    return episode


def _background(record: Located, layout: CorpusLayout) -> List[str]:
    if not layout.background:
        return []
    found = record.find(layout.background, "")
    texts = found.items() if isinstance(found.value, list) else [found]
    return [_clean(text.text(), layout) for text in texts if text.value != ""]


def _texts(found: Located, layout: CorpusLayout) -> List[str]:
    """Return the strings of a list, or of a single value. Whole numbers become strings, because
    classes may be numbered."""
    parts = found.items() if isinstance(found.value, list) else [found]
    texts = [str(part.value) if type(part.value) is int else part.text() for part in parts]
    if layout.label_separator:
        # There may be commas around the separator, too.
        several = (part for text in texts for part in text.split(layout.label_separator))
        texts = [part.strip(" \t,") for part in several if part.strip(" \t,")]
    return [_clean(text, layout) for text in texts]


def _text(place: Located, layout: CorpusLayout, at: Bookmark) -> str:
    if isinstance(layout.text, str):
        if layout.text and isinstance(place.get(layout.text), list):
            return _clean(_joined(place.find(layout.text), layout, at), layout)
        return _clean(place.text(layout.text), layout)
    several = [place.find(where, None) for where in layout.text]
    if all(part.value is None for part in several):
        wanted = " or ".join(repr(where) for where in layout.text)
        names = place.value if isinstance(place.value, dict) else ()
        raise place.error(f"has no {wanted}: {missing(layout.text[0], names, 'field')}")
    return _clean(layout.join.join(part.text() for part in several if part.value), layout)


def _joined(found: Located, layout: CorpusLayout, at: Bookmark) -> str:
    """Join the texts of content that consists of parts, such as texts and images.

    RAISES (DataError): If no part is a text.
    """
    parts = [part if isinstance(part.value, str) else part.find("text", None)
             for part in found.items()]  # fmt: skip
    texts = [part.text() for part in parts if part.value is not None]
    if not texts:
        raise found.error("has no part with a 'text'")
    at.leave_out("parts of turns that are not text, such as images", len(parts) - len(texts))
    return layout.join.join(texts)


def _decoded_again(text: str, layout: CorpusLayout) -> str:
    """Return a text in UTF-8, if its bytes were written as characters of Latin-1."""
    if layout.latin1:
        with suppress(UnicodeError):
            return text.encode("latin-1").decode("utf-8")
    return text


def _clean(text: str, layout: CorpusLayout) -> str:
    text = _decoded_again(text, layout)
    if layout.html:
        text = unescape(_TAG.sub("", _LINE_END.sub("\n", text)))
    for old, new in (layout.replace or {}).items():
        text = re.sub(old, new, text)
    return text
