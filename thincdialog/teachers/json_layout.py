"""JSONLayout: corpora in JSON or tables of any layout, described in a few lines."""

from collections import Counter
from functools import partial
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple, Union

from ..errors import DataError
from ..messages import Episode, Message
from ..registry import registry
from .arguments import FileSource, candidate_file
from .bookmark import Bookmark
from .conversations import Said, speaker_episodes, why_empty
from .layout_file import Layout, find_layout
from .reading import PathOrPaths, check_candidates, kind
from .records import Place, read_records
from .teacher import Teacher


@registry.teachers("thincdialog.JSONLayout.v1")
def JSONLayout(
    layout: str,
    train: Optional[PathOrPaths] = None,
    dev: Optional[PathOrPaths] = None,
    test: Optional[PathOrPaths] = None,
    label_speaker: Optional[str] = None,
    mutators: Optional[Union[List[Any], Dict[str, Any]]] = None,
    candidates: Optional[str] = None,
    streaming: bool = False,
) -> Teacher:
    """A corpus in JSON, JSON lines, CSV or TSV as it is published. A layout says where
    its texts and labels stand: `alpaca`, `convokit`, `dailydialog`, `dolly`, `messages`,
    `multiwoz21`, `personachat`, `prompt-completion`, `sgd`, `sharegpt`, `taskmaster` and
    `topicalchat` come along; your own is a short YAML or JSON file (`Layout` in
    thincdialog/teachers/layout_file.py says what stands in it).

    layout (str): Name of a layout that comes along, or path of a .yml or .json file.
    train (Optional[Union[str, List[str]]]): File or files; plain or gzip'd.
    dev (Optional[Union[str, List[str]]]): The same for the split `dev`.
    test (Optional[Union[str, List[str]]]): The same for the split `test`.
    label_speaker (Optional[str]): Of conversations, whose turns are the labels, see
        `thincdialog.Conversations.v1`; as the layout says if None.
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one a line.
    streaming (bool): Read the files for every epoch instead of holding them. A JSON file
        that is not lines is held while it is read, and is read from its beginning where
        a run goes on.
    RAISES (ConfigError): If there is no such layout.
    """
    found = find_layout(layout)
    given = {"train": train, "dev": dev, "test": test}
    return Teacher(
        {
            split: FileSource(
                partial(read_layout_file, layout=found, split=split, label_speaker=label_speaker),
                paths,
            )
            for split, paths in given.items()
            if paths
        },
        candidates=candidate_file(candidates),
        mutators=mutators,
        streaming=streaming,
        single_turn=not found.is_conversation and not found.examples,
        text_fields=("labels",)
        if found.is_conversation and (label_speaker or found.label_speaker) == "both"
        else ("text", "labels"),
    )


def read_layout_file(
    path: str,
    layout: Layout,
    split: str = "train",
    label_speaker: Optional[str] = None,
    left_out: Optional[Counter[str]] = None,
    at: Optional[Bookmark] = None,
) -> Iterator[Episode]:
    """The episodes of one file.

    path (str): The file.
    layout (Layout): Where things stand in it.
    split (str): The split, where one file holds several.
    label_speaker (Optional[str]): Whose turns are the labels; as the layout says if None.
    left_out (Optional[Counter]): Counts what is no part of an episode, by its kind.
    at (Optional[Bookmark]): Lies where to begin, and is moved along. Of a JSON file that
        is no lines it stays at the beginning.
    RAISES (DataError): With the line and the place in it, if something is not there.
    """
    where = layout.records
    if isinstance(where, dict):
        if split not in where:
            text = f"the layout has no 'records' for '{split}' (there is: {', '.join(where)})"
            raise DataError(path, text)
        where = where[split]
    at = at or Bookmark()
    records = read_records(path, where, at)
    is_empty = at.is_at_begin
    if not layout.is_conversation:
        for number, record in enumerate(records, start=at.count):
            at.before(number)
            is_empty = False
            yield _examples(record, layout, _name(record, layout, number))
        if is_empty:
            raise DataError(path, "holds no examples")
        return
    speaker = label_speaker or layout.label_speaker
    speakers: Dict[str, None] = {}
    number = -1
    for number, (record, turns) in enumerate(_conversations(records, layout, at), start=at.count):
        said, opening = _said(turns, layout)
        opening = [*_background(record, layout), *opening]
        if len(speakers) < 100:
            speakers.update((who, None) for who, _ in said)
        name = _name(record, layout, number)
        for episode in speaker_episodes(said, speaker, name, left_out):
            is_empty = False
            yield _opened(episode, opening)
    if is_empty:
        raise DataError(path, why_empty(number + 1, speaker, list(speakers)))


def _name(record: Place, layout: Layout, number: int) -> str:
    if layout.id == "$key":
        return record.key or str(number)
    if layout.group:
        return str(record.find(layout.group).value)
    found = record.find(layout.id, None).value if layout.id else None
    return str(number) if found is None else str(found)


def _conversations(
    records: Iterator[Place], layout: Layout, at: Bookmark
) -> Iterator[Tuple[Place, List[Place]]]:
    """Each conversation's record (of a group, the first) and turns."""
    number = at.count
    if not layout.group:
        for record in records:
            at.before(number)
            yield record, list(record.find(layout.turns).items())
            number += 1
        return
    rows: List[Place] = []
    # Those that the bookmark lay behind are not known.
    done: Set[str] = set()
    current = None
    for row in records:
        group = row.find(layout.group)
        if rows and group.value != current:
            done.add(str(current))
            yield rows[0], _in_order(rows, layout)
            number += 1
            rows = []
        if not rows:
            at.before(number)
        if str(group.value) in done:
            text = f"is {group.value!r} again: rows of one conversation must stand together"
            raise group.error(text)
        current = group.value
        rows.append(row)
    if rows:
        yield rows[0], _in_order(rows, layout)


def _in_order(rows: List[Place], layout: Layout) -> List[Place]:
    """The rows of a group, each behind the one that it answers."""
    if not layout.reply_to:
        return rows
    names = {str(row.find(layout.turn_id).value) for row in rows}
    answers: Dict[Optional[str], Place] = {}
    for row in rows:
        target = row.find(layout.reply_to, None)
        # What answers nothing, or nothing here, begins.
        key = str(target.value) if str(target.value) in names else None
        if key in answers:
            what = "a second answer to the same turn" if key is not None else "a second beginning"
            raise target.error(f"makes this {what}: trees are no conversations")
        answers[key] = row
    ordered: List[Place] = []
    key = None
    while key in answers:
        row = answers.pop(key)
        ordered.append(row)
        key = str(row.find(layout.turn_id).value)
    if answers:
        row = next(iter(answers.values()))
        raise row.find(layout.reply_to, None).error("leads round in a circle")
    return ordered


def _said(turns: List[Place], layout: Layout) -> Tuple[List[Said], List[str]]:
    """Speaker and text of each turn, and the texts of the background."""
    said: List[Said] = []
    opening: List[str] = []
    for turn in turns:
        text = _text(turn, layout)
        if not layout.speaker:
            said.append((str(len(said) % 2 + 1), text))
            continue
        who = turn.find(layout.speaker)
        name = str(who.value) if type(who.value) is int else who.text()
        if name in (layout.background_speakers or ()):
            opening.append(text)
        else:
            said.append((name, text))
    return said, opening


def _background(record: Place, layout: Layout) -> List[str]:
    if not layout.background:
        return []
    found = record.find(layout.background, "")
    texts = found.items() if isinstance(found.value, list) else [found]
    return [_replaced(text.text(), layout) for text in texts if text.value != ""]


def _opened(episode: Episode, opening: List[str]) -> Episode:
    """The episode with lines of background before its first text."""
    if opening and episode:
        episode[0]["text"] = "\n".join([*opening, episode[0]["text"]])
    return episode


def _examples(record: Place, layout: Layout, name: str) -> Episode:
    places = record.find(layout.examples).items() if layout.examples else [record]
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
            check_candidates(labels, message["label_candidates"], found.path, found.line)
        episode.append(message)
    return _opened(episode, _background(record, layout))


def _texts(place: Place, layout: Layout) -> List[str]:
    """The strings of a list, or one; whole numbers, too, as classes have them."""
    parts = list(place.items()) if isinstance(place.value, list) else [place]
    return [
        _replaced(str(part.value) if type(part.value) is int else part.text(), layout)
        for part in parts
    ]


def _text(place: Place, layout: Layout) -> str:
    if isinstance(layout.text, str):
        return _replaced(place.find(layout.text).text(), layout)
    found = [place.find(where, None) for where in layout.text]
    if all(part.value is None for part in found):
        wanted = " or ".join(repr(where) for where in layout.text)
        raise place.error(f"has no {wanted} ({kind(place.value)})")
    return _replaced("\n".join(part.text() for part in found if part.value), layout)


def _replaced(text: str, layout: Layout) -> str:
    for old, new in (layout.replace or {}).items():
        text = text.replace(old, new)
    return text
