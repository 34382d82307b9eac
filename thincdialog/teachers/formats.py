"""The text formats by name: how each is read, written, and checked."""

import csv
import json
from collections import Counter
from functools import partial
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

from ..errors import DataError
from ..messages import Episode, Message
from .conversations import read_conversations
from .json_layout import read_layout_file
from .labelled_text import read_labelled_text
from .layout_file import Layout
from .numbered_text import read_numbered_text
from .parlai_text import read_parlai_text
from .reading import short
from .writing import (
    conversation_line,
    csv_line,
    labelled_json_line,
    numbered_lines,
    parlai_conversation_line,
    parlai_lines,
    tsv_line,
)


class Choices(NamedTuple):
    """What a reader may have to be told.

    label_speaker (Optional[str]): Whose turns are the labels, in conversations.
    text_field (str): Name of the text's field, in labelled text.
    label_field (str): Name of the label's field.
    """

    label_speaker: Optional[str] = None
    text_field: str = "text"
    label_field: str = "label"


class Format(NamedTuple):
    """One text format.

    about (str): What it is, in a few words.
    read (Callable): Gives the episodes of a file; counts what is in none of them.
    lines (Callable): Lines for an episode (and its name), which it may not hold.
    parse (Optional[Callable]): What such lines read as, to find what is not held;
        None if the format holds every text.
    header (str): Line before all others.
    fields (Optional[Sequence[str]]): Fields that it can hold; any if None.
    has_ids (bool): Whether the ids that the reader gives stand in the file.
    n_turns (int): Most turns of an episode; 0 for any number.
    n_labels (int): Most labels of an example; 0 for any number.
    hint (str): What a text must not hold.
    """

    about: str
    read: Callable[[str, Choices, Counter[str]], Iterator[Episode]]
    lines: Callable[[Episode, str], List[str]]
    parse: Optional[Callable[[List[str]], List[Episode]]] = None
    header: str = ""
    fields: Optional[Sequence[str]] = None
    has_ids: bool = False
    n_turns: int = 0
    n_labels: int = 0
    hint: str = ""


def _read_parlai(path: str, choices: Choices, left_out: Counter[str]) -> Iterator[Episode]:
    return read_parlai_text(path)


def _read_numbered(
    supporting: bool, path: str, choices: Choices, left_out: Counter[str]
) -> Iterator[Episode]:
    return read_numbered_text(path, supporting, left_out=left_out)


def _read_conversations(path: str, choices: Choices, left_out: Counter[str]) -> Iterator[Episode]:
    left_out["names of speakers"] += 1
    return read_conversations(path, choices.label_speaker or "second", left_out)


def layout_format(layout: Layout) -> Format:
    """A format to read by a layout; there is none to write.

    layout (Layout): Where things stand.
    """

    def read(path: str, choices: Choices, left_out: Counter[str]) -> Iterator[Episode]:
        left_out["names of speakers"] += layout.is_conversation and bool(layout.speaker)
        left_out["what the layout does not name"] += 1
        speaker = choices.label_speaker
        return read_layout_file(path, layout, label_speaker=speaker, left_out=left_out)

    has_ids = bool(layout.id or layout.group)
    return Format(layout.about, read, lambda episode, name: [], has_ids=has_ids)


def _read_labelled(path: str, choices: Choices, left_out: Counter[str]) -> Iterator[Episode]:
    return read_labelled_text(path, choices.text_field, choices.label_field, keep_fields=True)


def _parse_parlai(lines: List[str]) -> List[Episode]:
    return list(read_parlai_text("", enumerate(lines, start=1)))


def _parse_numbered(supporting: bool, lines: List[str]) -> List[Episode]:
    return list(read_numbered_text("", supporting, enumerate(lines, start=1)))


def _parse_json(lines: List[str]) -> List[Episode]:
    row = json.loads(lines[0])
    labels = row.pop("label")
    message = Message(text=row.pop("text"), labels=labels if isinstance(labels, list) else [labels])
    if "id" in row:
        message["source_id"] = row.pop("id")
    return [[Message({**message, **row})]]


def _parse_table(suffix: str, lines: List[str]) -> List[Episode]:
    inner = [f"{line}\n" for line in lines[0].split("\n")]
    if suffix == ".csv":
        rows = csv.reader(inner, strict=True)
    else:
        rows = csv.reader(inner, delimiter="\t", quoting=csv.QUOTE_NONE)
    return [[Message(text=row[0], labels=row[1:])] for row in rows]


def _numbered(about: str, supporting: bool) -> Format:
    fields = ["text", "labels", "reward", "label_candidates"]
    return Format(
        about,
        partial(_read_numbered, supporting),
        lambda episode, name: numbered_lines(episode),
        partial(_parse_numbered, supporting),
        fields=[*fields, "supporting"] if supporting else fields,
        hint="in it \\n stands for a line end, tabs and bars divide, an answer must not be "
        "empty, and blanks at the ends of a line are lost: --drop blanks takes them off",
    )


def _conversation(about: str, write: Callable[[Episode, str], List[str]]) -> Format:
    fields = ["text", "labels", "source_id"]
    return Format(about, _read_conversations, write, fields=fields, has_ids=True, n_labels=1)


def _table(about: str, suffix: str, write: Callable[[Episode], List[str]], hint: str) -> Format:
    divider = "," if suffix == ".csv" else "\t"
    return Format(
        about,
        _read_labelled,
        lambda episode, name: write(episode),
        partial(_parse_table, suffix),
        header=f"text{divider}label",
        fields=["text", "labels"],
        n_turns=1,
        n_labels=1,
        hint=hint,
    )


FORMATS: Dict[str, Format] = {
    "parlai": Format(
        "ParlAI's text: key:value fields between tabs",
        _read_parlai,
        lambda episode, name: parlai_lines(episode),
        _parse_parlai,
        hint=r"in it \n, \t and __PIPE__ stand for a line end, a tab and a bar",
    ),
    "fbdialog": _numbered("numbered lines with answers, rewards, candidates", False),
    "babi": _numbered("numbered lines with answers and supporting lines", True),
    "conversations": _conversation('JSON lines {"id", "turns": [...]}', conversation_line),
    "parlai-conversations": _conversation(
        'JSON lines {"dialog": [[...]]} as ParlAI writes them', parlai_conversation_line
    ),
    "jsonl": Format(
        "labelled text, JSON lines",
        _read_labelled,
        lambda episode, name: labelled_json_line(episode),
        _parse_json,
        n_turns=1,
        hint="'text', 'label' and 'id' have a meaning of their own in it",
    ),
    "csv": _table(
        "labelled text, CSV", ".csv", csv_line, "in it CR LF and LF are the same line end"
    ),
    "tsv": _table("labelled text, TSV", ".tsv", tsv_line, "in it are no tabs and line ends"),
}

CONVERSATIONS = ("conversations", "parlai-conversations")


def why_not_held(episode: Episode, lines: List[str], name: str) -> str:
    """What of an episode its lines do not say, or "".

    episode (Episode): Without the field `id`.
    lines (List[str]): From the format's ``lines``.
    name (str): Of the format.
    """
    parse = FORMATS[name].parse
    for line in lines:
        if "\r\n" in line or line.endswith("\r") or "\0" in line:
            return "it has a NUL, or a CR before a line end"
        if "\n" in line and name != "csv":
            return "it has a line end where there can be none"
    if parse is None:
        return ""
    try:
        found = parse(lines)
    except (DataError, ValueError, csv.Error, LookupError) as error:
        return f"it would not be readable: {str(error).partition('  ')[2] or error}"
    n_found = [len(part) for part in found]
    if n_found != [len(episode)]:
        return f"{len(episode)} turns would be read as {sum(n_found)} (of {len(found)} episodes)"
    for message, back in zip(episode, found[0]):
        back.pop("id", None)
        for field in dict.fromkeys([*message, *back]):
            if message.get(field) != back.get(field):
                was, now = short(message.get(field), 40), short(back.get(field), 40)
                return f"'{field}' {was} would be read as {now}"
    return ""
