"""Convert data from one text format to another, without silent loss."""

import inspect
import json
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from ..errors import DataError, DialogError
from ..messages import Episode, Message
from .context import BadData, Bookmark
from .conversations import Conversation, conversation_line, conversation_name, read_turns
from .file_list import file_list
from .formats import FORMATS, check_name
from .guessing import guess_format
from .json_layout import conversation_of, read_layout_file, read_parts
from .labelled_text import labelled_json_line
from .layout_file import CorpusLayout, find_layout, is_layout_file, shipped_layouts
from .output_file import open_output
from .parlai_text import parlai_lines
from .records import read_records
from .text_file import PathOrPaths
from .wording import short

# Maps each format to a function that returns the lines of an episode, given its name.
WRITERS: Dict[str, Callable[[Episode, str], List[str]]] = {
    "parlai": parlai_lines,
    "conversations": conversation_line,
    "jsonl": labelled_json_line,
}
TALKS = ("conversations", "parlai-conversations")


@dataclass
class Conversion:
    """Hold the result of a conversion.

    from_format (str): Name of the format that was read.
    to_format (str): Name of the format that was written.
    was_guessed (bool): Whether `from_format` was guessed from the file.
    n_episodes (int): Number of episodes (or conversations) written.
    n_examples (int): Number of examples (or turns) written.
    unit (str): The unit of `n_examples`: "example" or "turn".
    bad (Optional[BadData]): Data that was left out because it cannot be read, or does not fit into
        the format; None if such data is an error.
    left_out (Counter): Number of other items that were read and not written, by kind.
    """

    from_format: str
    to_format: str
    was_guessed: bool = False
    n_episodes: int = 0
    n_examples: int = 0
    unit: str = "example"
    bad: Optional[BadData] = None
    left_out: Counter[str] = field(default_factory=Counter)


def convert(
    source: Union[Path, PathOrPaths],
    target: Union[str, Path],
    *,
    from_format: Optional[str] = None,
    to_format: Optional[str] = None,
    label_speaker: Optional[str] = None,
    text_field: str = "text",
    label_field: Optional[str] = None,
    columns: Optional[Sequence[str]] = None,
    delimiter: Optional[str] = None,
    encoding: Optional[str] = None,
    drop: Sequence[str] = (),
    skip: bool = False,
    force: bool = False,
) -> Conversion:
    """Convert data to another format, episode by episode. The target is written completely or not
    at all.

    Episodes are written with their texts, labels, candidates, rewards, ids and, if the format has
    a place for them, all other fields. Data that the format cannot hold is an error. From a format
    or layout of conversations to "conversations", every turn is written with its speaker and, from
    JSON lines, all other fields.

    source (Union[Path, str, List[str]]): The file or files, as a teacher takes them: plain or
        compressed, a folder, or a pattern. All are in the same format.
    target (Union[str, Path]): The file to write; gzip-compressed if its name ends in .gz.
    from_format (Optional[str]): A name in ``FORMATS``, or a layout of
        `thincdialog.JSONLayout.v1` (its name, or the path of its file); None to guess the format
        from the file.
    to_format (Optional[str]): "parlai", "conversations" or "jsonl".
    label_speaker (Optional[str]): Speaker whose turns are the labels; None for the layout's label
        speaker, or "second" without a layout.
    text_field (str): Name of the text's field in labelled text that is read.
    label_field (Optional[str]): Name of the label's field in labelled text that is read; "label"
        if None. For conversations in a layout, the place of the label of each text that is not the
        label speaker's: in its turn, in the turn after it, or, for the last one, in the record.
        None takes the answers as labels.
    columns (Optional[Sequence[str]]): Column names of a table that has no header.
    delimiter (Optional[str]): Delimiter of a CSV file; None to detect it from the first line.
    encoding (Optional[str]): Encoding of the source; None for UTF-8, or the encoding of the byte
        order mark.
    drop (Sequence[str]): Fields to leave out. "labels": all labels except the first;
        "history": the context, so that each turn becomes a separate example.
    skip (bool): Leave out episodes that the format cannot hold, and data that cannot be read.
    force (bool): Whether an existing target may be replaced; a source file is never replaced.
    RETURNS (Conversion): Counts of the data that was written and left out.
    RAISES (DialogError): If a format is unknown.
    RAISES (DataError): If the source is malformed, or the format cannot hold the data.
    RAISES (OutputError): If the target exists, or cannot be written.
    """
    paths = file_list(source if isinstance(source, list) else str(source))
    if to_format is None:
        raise DialogError(f"{target}  needs a format: give one of {', '.join(WRITERS)}")
    check_name(to_format, WRITERS, " for writing")
    own_layout = [from_format] if from_format and is_layout_file(from_format) else []
    has_fields = bool(label_field or columns or text_field != "text")
    found = from_format or guess_format(paths[0], encoding, has_fields, text_field)
    check_name(found, [*FORMATS, *shipped_layouts(), *own_layout], " for reading")
    done = Conversion(found, to_format, from_format is None)
    at = Bookmark(left_out=done.left_out, encoding=encoding)
    at.has_flags = True
    counts = at.counts
    at.bad = done.bad = counts if skip else None
    layout = None if done.from_format in FORMATS else find_layout(done.from_format)
    is_talk = done.from_format in TALKS if layout is None else layout.is_conversation
    choices: Dict[str, Any] = {"columns": columns, "delimiter": delimiter}
    if is_talk and not label_field and to_format == "conversations":
        done.unit = "turn"
        parts = partial(_turns, layout=layout, choices=choices, drop=drop)
    else:
        choices.update(text_field=text_field, label_field=label_field, label_speaker=label_speaker)
        parts = partial(_episodes, layout=layout, choices=choices, drop=drop, done=done)
    with open_output(target, force, [*paths, *own_layout]) as write:
        try:
            for number, path in enumerate(paths):
                at.open(number)
                at.counts, counts.path = counts, path
                for n_examples, lines in parts(path, at=at):
                    for line in lines:
                        write(line)
                    done.n_episodes += 1
                    done.n_examples += n_examples
            if not done.n_episodes:
                left_out = f" (left out: {', '.join(done.left_out)})" if done.left_out else ""
                raise DataError(path, f"holds nothing to write{left_out}")
        except DataError as error:
            # Nothing was written because of the data that was left out: show its first error.
            if done.n_episodes or not counts.first:
                raise
            raise DataError(path, f"nothing is left to write: {counts.first[0]}") from error
    counts.path = str(source)
    done.left_out = +done.left_out
    return done


def _episodes(
    source: str,
    layout: Optional[CorpusLayout],
    choices: Dict[str, Any],
    drop: Sequence[str],
    done: Conversion,
    at: Bookmark,
) -> Iterator[Tuple[int, List[str]]]:
    """Yield the number of examples and the lines of each episode."""
    if layout is None:
        read, has_ids = FORMATS[done.from_format], done.from_format in TALKS
    else:
        read = partial(read_layout_file, layout=layout, system_turns="field")
        has_ids = bool(layout.id or layout.group)
    takes = inspect.signature(read).parameters
    given = {name: value for name, value in choices.items() if name in takes and value is not None}
    for episode in at.counted(read(source, at=at, **given)):
        for part in _without(episode, drop):
            first = part[0].get("id", "")
            messages = [_with_id(message, has_ids, done, "id" in drop, at) for message in part]
            name = conversation_name(messages)
            if done.to_format == "conversations":
                for message in messages:
                    is_lost = message.pop("source_id", None) is not None and name is None
                    done.left_out["ids"] += is_lost
            try:
                lines = WRITERS[done.to_format](messages, name or str(done.n_episodes + 1))
            except ValueError as error:
                text = f"example {short(first)} does not fit into the format '{done.to_format}'"
                hint = "choose another format, or leave out fields (--drop) or episodes (--skip)"
                at.refuse(DataError(source, f"{text}: {error}; {hint}"))
                # The whole episode is left out, so it must not count as read.
                at.counts.n_read -= len(part) == len(episode)
            else:
                yield len(messages), lines


def _without(episode: Episode, drop: Sequence[str]) -> Iterable[Episode]:
    for message in episode:
        for name in (*drop, *["context"] * ("history" in drop)):
            if name == "labels":
                del message["labels"][1:]
            elif name not in ("text", "id"):
                message.pop(name, None)
    return [[message] for message in episode] if "history" in drop else [episode]


def _with_id(
    message: Message, has_ids: bool, done: Conversion, drop_id: bool, at: Bookmark
) -> Message:
    """Return the message with its id in the file as `source_id`, if it has one and may keep it.

    has_ids (bool): Whether the ids that the reader returns are from the file.
    """
    name = message.pop("id", None)
    if not has_ids:
        name = message.pop("source_id", None)
    elif at.file:
        name = f"{at.file}:{name}"
    if name is not None and not drop_id:
        # Only JSON distinguishes a number from the string of its digits.
        is_number = type(name) is int and done.to_format != "jsonl"
        message["source_id"] = str(name) if is_number else name
    if message.get("reward") == 0:
        del message["reward"]  # A reward of 0 means the same as no reward.
    return message


def _turns(
    source: str,
    layout: Optional[CorpusLayout],
    choices: Dict[str, Any],
    drop: Sequence[str],
    at: Bookmark,
) -> Iterator[Tuple[int, List[str]]]:
    """Yield the number of turns and the line of each conversation."""
    at.counts.unit = "conversations"
    if layout is None:
        given = read_turns(source, at)
    else:
        at.leave_out("fields that the layout does not name")
        records = read_records(source, layout, at, "train", **choices)
        given = read_parts(records, layout, at, conversation_of)
    for whole in at.try_each(partial(_as_object, drop=drop, at=at), given):
        at.counts.n_read += 1
        if at.file and "id" in whole:
            whole["id"] = f"{at.file}:{whole['id']}"
        yield len(whole["turns"]), [json.dumps(whole, ensure_ascii=False)]


def _as_object(one: Conversation, drop: Sequence[str], at: Bookmark) -> Dict[str, Any]:
    """Return a conversation as the JSON object that is written."""
    own = ("speaker" if "turns" in one.fields else "id", "text", *drop)
    turns: List[Dict[str, Any]] = []
    for (speaker, text), turn in zip(one.said, one.turns):
        names = [name for name in turn if name not in own] if one.fields else []
        if "speaker" in names:
            problem = f"turn {len(turns) + 1}: the field 'speaker' has another meaning"
            raise at.error(f"{problem} in 'conversations'; rename it, or --drop speaker")
        turns.append({"speaker": speaker, "text": text, **{name: turn[name] for name in names}})
    at.leave_out("weights of 0", len(one.context_only))
    if one.background and turns:
        turns[0]["text"] = "\n".join([*one.background, turns[0]["text"]])
    system = {"system": "\n".join(one.system)} if one.system else {}
    fields = one.fields or {"id": one.name, **system}
    left_out = ("turns" if "turns" in one.fields else "dialog", *drop)
    return {**{name: fields[name] for name in fields if name not in left_out}, "turns": turns}
