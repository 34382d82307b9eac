"""Corpora in JSON or tables, read as a layout describes them."""

from itertools import groupby
from typing import Dict, Iterator, List, Literal, Optional, Set, Tuple

from ..errors import DataError
from ..messages import Episode, Message
from .bookmark import Bookmark
from .candidates import check_candidates
from .conversations import Conversation, Said, spoken_episodes
from .layout_file import CorpusLayout
from .records import Found, read_records
from .wording import kind

# What becomes of the turns of a system.
SystemTurns = Literal["context", "field", "drop"]

# The name of a conversation or episode, its record, and its turns or examples.
Named = Tuple[str, Found, List[Found]]


def read_layout_file(
    path: str,
    layout: CorpusLayout,
    split: str = "train",
    label_speaker: Optional[str] = None,
    at: Optional[Bookmark] = None,
    system_turns: SystemTurns = "context",
) -> Iterator[Episode]:
    """The episodes of one file.

    path (str): The file.
    layout (CorpusLayout): Where things stand in it.
    split (str): The split, where one file holds several.
    label_speaker (Optional[str]): Whose turns are the labels; as the layout says if None.
    at (Optional[Bookmark]): Lies where to begin; moved along, unless the file is one value.
    system_turns (str): "context", "field" or "drop", see `thincdialog.JSONLayout.v1`.
    RAISES (DataError): With the line and the place in it, if something is not there.
    """
    where = layout.records
    if isinstance(where, dict):
        if split not in where:
            text = f"the layout has no 'records' for '{split}' (there is: {', '.join(where)})"
            raise DataError(path, text)
        where = where[split]
    at = at or Bookmark()
    at.leave_out("names of speakers", layout.is_conversation and bool(layout.speaker))
    at.leave_out("what the layout does not name")
    grouped = (_groups if layout.group else _single)(read_records(path, where, at), layout, at)
    if layout.is_conversation:
        conversations = (_conversation(*one, layout, at) for one in grouped)
        if system_turns == "drop":
            conversations = (one._replace(system=()) for one in conversations)
        speaker, as_context = label_speaker or layout.label_speaker, system_turns == "context"
        yield from spoken_episodes(conversations, speaker, path, at, as_context)
        return
    is_empty = at.is_at_begin
    for name, record, places in grouped:
        is_empty = False
        yield _examples(name, record, places, layout)
    if is_empty:
        raise DataError(path, "holds no examples")


def _single(records: Iterator[Found], layout: CorpusLayout, at: Bookmark) -> Iterator[Named]:
    """Each record's name, the record, and its turns or examples."""
    inner = layout.turns or layout.examples
    for number, record in enumerate(records, start=at.count):
        at.before(number)
        if layout.id == "$key":
            name = record.key or str(number)
        else:
            found = record.find(layout.id, None).value if layout.id else None
            name = str(number) if found is None else str(found)
        yield name, record, list(record.find(inner).items()) if inner else [record]


def _groups(rows: Iterator[Found], layout: CorpusLayout, at: Bookmark) -> Iterator[Named]:
    """Each group's name, its first row, and all rows in order."""
    done: Set[str] = set()  # Those that the bookmark lay behind are not known.
    groups = groupby(rows, lambda row: row.find(layout.group).value)
    for number, (value, group) in enumerate(groups, start=at.count):
        at.before(number)
        first = next(group)
        if str(value) in done:
            text = f"is {value!r} again: rows of one conversation must stand together"
            raise first.find(layout.group).error(text)
        done.add(str(value))
        yield str(value), first, _in_order([first, *group], layout)


def _in_order(rows: List[Found], layout: CorpusLayout) -> List[Found]:
    """The rows of a group, each behind the one that it answers."""
    if not layout.reply_to:
        return rows
    names = {str(row.find(layout.turn_id).value) for row in rows}
    answers: Dict[Optional[str], Found] = {}
    for row in rows:
        target = row.find(layout.reply_to, None)
        # What answers nothing, or nothing here, begins.
        key = str(target.value) if str(target.value) in names else None
        if key in answers:
            what = "a second answer to the same turn" if key is not None else "a second beginning"
            raise target.error(f"makes this {what}: trees are no conversations")
        answers[key] = row
    ordered: List[Found] = []
    key = None
    while key in answers:
        ordered.append(answers.pop(key))
        key = str(ordered[-1].find(layout.turn_id).value)
    if answers:
        row = next(iter(answers.values()))
        raise row.find(layout.reply_to, None).error("leads round in a circle")
    return ordered


def _conversation(
    name: str, record: Found, turns: List[Found], layout: CorpusLayout, at: Bookmark
) -> Conversation:
    said: List[Said] = []
    system: List[str] = []
    for turn in turns:
        text = _text(turn, layout)
        if not layout.speaker:
            said.append((str(len(said) % 2 + 1), text))
            continue
        who = turn.find(layout.speaker)
        speaker = str(who.value) if type(who.value) is int else who.text()
        if speaker not in (layout.background_speakers or ()):
            said.append((speaker, text))
        elif said:
            at.leave_out("turns of a system within conversations")
        elif text:
            system.append(text)
    return Conversation(name, said, _background(record, layout), system)


def _examples(name: str, record: Found, places: List[Found], layout: CorpusLayout) -> Episode:
    episode: Episode = []
    for place in places:
        label = place.find(layout.label)
        labels = _texts(label, layout)
        if not labels:
            raise label.error("is an empty list: give the example a label")
        message = Message(id=f"{name}/{len(episode)}", text=_text(place, layout), labels=labels)
        if layout.label_candidates:
            found = place.find(layout.label_candidates)
            message["label_candidates"] = _texts(found, layout)
            check_candidates(message, found.path, found.line)
        episode.append(message)
    opening = _background(record, layout)
    if opening and episode:
        episode[0]["text"] = "\n".join([*opening, episode[0]["text"]])
    return episode


def _background(record: Found, layout: CorpusLayout) -> List[str]:
    if not layout.background:
        return []
    found = record.find(layout.background, "")
    texts = found.items() if isinstance(found.value, list) else [found]
    return [_replaced(text.text(), layout) for text in texts if text.value != ""]


def _texts(found: Found, layout: CorpusLayout) -> List[str]:
    """The strings of a list, or one; whole numbers, too, as classes have them."""
    parts = found.items() if isinstance(found.value, list) else [found]
    return [
        _replaced(str(part.value) if type(part.value) is int else part.text(), layout)
        for part in parts
    ]


def _text(place: Found, layout: CorpusLayout) -> str:
    if isinstance(layout.text, str):
        return _replaced(place.find(layout.text).text(), layout)
    found = [place.find(where, None) for where in layout.text]
    if all(part.value is None for part in found):
        wanted = " or ".join(repr(where) for where in layout.text)
        raise place.error(f"has no {wanted} ({kind(place.value)})")
    return _replaced("\n".join(part.text() for part in found if part.value), layout)


def _replaced(text: str, layout: CorpusLayout) -> str:
    for old, new in (layout.replace or {}).items():
        text = text.replace(old, new)
    return text
