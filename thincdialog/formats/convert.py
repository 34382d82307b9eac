"""Converts data from one text format to another, without silent loss."""

import json
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from ..errors import DataError, DialogError
from ..messages import Episode, Message
from .bad_data import BadData
from .bookmark import Bookmark
from .conversations import CONTEXT, conversation_name, conversation_turns
from .formats import CONVERSATIONS, FORMATS, Format, why_not_held
from .guessing import format_by_name, guess_format
from .json_layout import conversation_of, read_layout_file, read_parts
from .layout_file import LAYOUT_SUFFIXES, CorpusLayout, find_layout, shipped_layouts
from .output_file import open_output
from .records import read_records
from .text_file import read_json_lines
from .wording import nearest, short


@dataclass
class Conversion:
    """What was converted.

    from_format (str): Name of the format that was read.
    to_format (str): Name of the format that was written.
    was_guessed (bool): Whether the first was told by the file.
    n_episodes (int): Episodes (or conversations) written.
    n_examples (int): Examples written, or turns.
    unit (str): Which of them: "example" or "turn".
    n_skipped (int): Episodes left out because the format cannot hold them.
    first_skipped (str): Why the first of them was.
    bad (Optional[BadData]): What cannot be read and was left out; None if nothing may be.
    left_out (Counter): What else was read and not written: its kind, and how often.
    """

    from_format: str
    to_format: str
    was_guessed: bool = False
    n_episodes: int = 0
    n_examples: int = 0
    unit: str = "example"
    n_skipped: int = 0
    first_skipped: str = ""
    bad: Optional[BadData] = None
    left_out: Counter[str] = field(default_factory=Counter)


def convert(
    source: Union[str, Path],
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
    """Write a data file in another format, episode by episode, whole or not at all.

    What travels are episodes: texts, labels, candidates, rewards, ids and, where the format
    has a place, any other field; what it cannot hold is an error. Between the two formats of
    conversations, every turn travels with its speaker and all other fields; from a layout of
    conversations to one of these, every turn with its speaker, and what a system said before.

    source (Union[str, Path]): The file, plain or gzip'd.
    target (Union[str, Path]): The file to write; gzip'd if its name ends in .gz.
    from_format (Optional[str]): A name in ``FORMATS``, or a layout of
        `thincdialog.JSONLayout.v1` (a name, or its file's path); None to tell by the file.
    to_format (Optional[str]): A name in ``FORMATS``; None only for .csv and .tsv.
    label_speaker (Optional[str]): Whose turns are labels; "second", or the layout's, if None.
    text_field (str): Name of the text's field in labelled text that is read.
    label_field (Optional[str]): Name of the label's field in labelled text that is read; "label"
        if None. Of conversations in a layout, the place of the label of each text that is not the
        label speaker's: in its turn, in the turn after it, or, for the last one, in the record.
        None takes the answers as labels.
    columns (Optional[Sequence[str]]): Column names of a table that has no header.
    delimiter (Optional[str]): Between the cells of a CSV file; told by its first line if None.
    encoding (Optional[str]): Of the source; UTF-8, or as a byte order mark says, if None.
    drop (Sequence[str]): Fields to leave out. "labels": all labels but the first;
        "history": the turns before, so that each turn is an example of its own;
        "blanks": those at both ends of each line.
    skip (bool): Leave out episodes that the format cannot hold, and what cannot be read.
    force (bool): Whether a target that is there may be replaced; never a file that is read.
    RETURNS (Conversion): What was done, and what was left out.
    RAISES (DialogError): If a format is unknown.
    RAISES (DataError): If the source is malformed, or something cannot be held.
    RAISES (OutputError): If the target is there, or cannot be written.
    """
    source, target = str(source), str(target)
    to_format = to_format or format_by_name(target)
    if to_format is None:
        raise DialogError(f"{target}  tells no format: give one of {', '.join(FORMATS)}")
    is_own = Path(str(from_format)).suffix.lower() in LAYOUT_SUFFIXES
    own_layout = [str(from_format)] if is_own else []
    readable = [*FORMATS, *shipped_layouts(), *own_layout]
    for name, known in ((from_format, readable), (to_format, list(FORMATS))):
        if name is not None and name not in known:
            hint = nearest(name, known) or f" (there are: {', '.join(known)})"
            raise DialogError(f"there is no format '{name}'{hint}")
    done = Conversion(from_format or guess_format(source), to_format, from_format is None)
    at = Bookmark(left_out=done.left_out)
    at.encoding = encoding
    at.counts.path = source
    at.bad = done.bad = at.counts if skip else None
    layout = None if done.from_format in FORMATS else find_layout(done.from_format)
    is_talk = done.from_format in CONVERSATIONS if layout is None else layout.is_conversation
    if is_talk and not label_field and to_format in CONVERSATIONS:
        talks = _conversations(source, layout, columns, delimiter, at)
        parts, done.unit = _turns(talks, to_format, drop, at), "turn"
    else:
        choices: Dict[str, Any] = {"text_field": text_field, "label_field": label_field}
        choices.update(columns=columns, delimiter=delimiter)
        if done.from_format in FORMATS:
            choices["label_field"] = label_field or "label"
        if label_speaker:
            choices["label_speaker"] = label_speaker
        parts = _episodes(source, layout, choices, drop, skip, done, at)
    with open_output(target, force, [source, *own_layout]) as write:
        if FORMATS[to_format].header:
            write(FORMATS[to_format].header)
        try:
            for n_examples, lines in parts:
                for line in lines:
                    write(line)
                done.n_episodes += 1
                done.n_examples += n_examples
        except DataError as error:
            # That nothing is there follows from what was left out.
            if done.bad is None or not done.bad.first or done.n_episodes:
                raise
            raise DataError(source, f"nothing is left to write: {done.bad.first[0]}") from error
        if not done.n_episodes:
            why = done.first_skipped or (done.bad.first[0] if done.bad and done.bad.first else "")
            raise DataError(source, f"nothing is left to write: {why}")
    done.left_out = +done.left_out
    return done


def _episodes(
    source: str,
    layout: Optional[CorpusLayout],
    choices: Dict[str, Any],
    drop: Sequence[str],
    skip: bool,
    done: Conversion,
    at: Bookmark,
) -> Iterator[Tuple[int, List[str]]]:
    """For each episode its number of examples, and its lines."""
    if layout is None:
        reads = FORMATS[done.from_format]
    else:
        read = partial(read_layout_file, layout=layout, system_turns="field")
        has_ids = bool(layout.id or layout.group)
        takes = ("label_speaker", "label_field", "columns", "delimiter")
        reads = Format(read, lambda episode, name: [], takes, has_ids=has_ids)
    writes = FORMATS[done.to_format]
    told = {name: value for name, value in choices.items() if name in reads.takes}
    for episode in at.counted(reads.read(source, at=at, **told)):
        for part in _without(episode, drop):
            ids = [message.get("id", "") for message in part]
            messages = [_carried(message, reads, done, "id" in drop) for message in part]
            lines: List[str] = []
            place, why = 0, _why_not(messages, writes)
            if not why:
                name = conversation_name(messages)
                if done.to_format in CONVERSATIONS and name is None:
                    done.left_out["ids"] += sum("source_id" in message for message in messages)
                lines = writes.lines(messages, name or str(done.n_episodes + 1))
                place, why = _first_not_held(messages, lines, done.to_format)
            example = f"example {short(ids[place])}"
            if not why:
                yield len(messages), lines
            elif skip:
                done.n_skipped += 1
                done.first_skipped = done.first_skipped or f"{example}: {why}"
            else:
                text = f"{example} does not fit into the format '{done.to_format}': {why}"
                hint = "choose another format, or leave such episodes out (--skip)"
                raise DataError(source, f"{text}; {hint}")


def _first_not_held(episode: Episode, lines: List[str], name: str) -> Tuple[int, str]:
    """The turn of an episode that its lines do not hold, and why; or 0 and ""."""
    why = why_not_held(episode, lines, name)
    if not why:
        return 0, ""
    write, hint = FORMATS[name].lines, FORMATS[name].hint
    alone = (why_not_held([message], write([message], "1"), name) for message in episode)
    place, why = next(((place, one) for place, one in enumerate(alone) if one), (0, why))
    return place, f"{why} ({hint})"


def _without(episode: Episode, drop: Sequence[str]) -> Iterable[Episode]:
    def trimmed(text: str) -> str:
        return "\n".join(line.strip() for line in text.split("\n"))

    for message in episode:
        for name in drop:
            if name == "labels":
                del message["labels"][1:]
            elif name == "blanks":
                message["text"] = trimmed(message["text"])
                for texts in ("labels", "label_candidates"):
                    if texts in message:
                        message[texts] = [trimmed(text) for text in message[texts]]
            elif name not in ("text", "id"):
                message.pop(name, None)
    return [[message] for message in episode] if "history" in drop else [episode]


def _carried(message: Message, reads: Format, done: Conversion, drop_id: bool) -> Message:
    """The message with `source_id` for its id in the file, if it has one and may keep it."""
    name = message.pop("id", None)
    name = name if reads.has_ids else message.pop("source_id", None)
    if name is not None and not drop_id:
        if "source_id" in (FORMATS[done.to_format].fields or ("source_id",)):
            # Only in JSON, a number is another thing than its digits.
            is_number = type(name) is int and done.to_format != "jsonl"
            message["source_id"] = str(name) if is_number else name
        else:
            done.left_out["ids"] += 1
    if message.get("reward") == 0:
        del message["reward"]  # The same as none.
    return message


def _why_not(episode: Episode, writes: Format) -> str:
    """What of an episode's form the format cannot hold, or ""."""
    names = {name for message in episode for name in message}
    surplus = [name for name in sorted(names) if name not in (writes.fields or names)]
    n_turns, n_labels = len(episode), max(len(message["labels"]) for message in episode)
    if writes.one_turn and n_turns > 1:
        return f"it has {n_turns} turns, there is place for one; --drop history cuts them apart"
    if surplus:
        return f"no place for the field '{surplus[0]}'; --drop {','.join(surplus)} leaves it out"
    if writes.one_label and n_labels > 1:
        return f"it has {n_labels} labels, there is place for one; --drop labels keeps the first"
    if writes.one_turn and not all(episode[0]["labels"]):
        return "its label is empty"
    return ""


def _conversations(
    source: str,
    layout: Optional[CorpusLayout],
    columns: Optional[Sequence[str]],
    delimiter: Optional[str],
    at: Bookmark,
) -> Iterator[Dict[str, Any]]:
    """The conversations of a file in the form of JSON lines."""
    if layout is None:
        yield from (conversation for _, conversation in read_json_lines(source, at))
        return
    at.leave_out("what the layout does not name")
    records = read_records(source, layout, "train", at, columns, delimiter)
    for name, said, background, system, _ in read_parts(
        records, layout, at, partial(conversation_of, at=at)
    ):
        turns = [{"speaker": who, "text": text} for who, text in said]
        if background and turns:
            turns[0]["text"] = "\n".join([*background, turns[0]["text"]])
        yield {"id": name, "turns": turns, **({"system": "\n".join(system)} if system else {})}


def _turns(
    talks: Iterable[Dict[str, Any]], to_format: str, drop: Sequence[str], at: Bookmark
) -> Iterator[Tuple[int, List[str]]]:
    """For each conversation its number of turns, and its line."""
    as_parlai = to_format == "parlai-conversations"
    at.counts.unit = "conversations"
    for conversation in talks:
        try:
            turns = _turns_of(conversation, to_format, drop, at)
        except DataError as error:
            at.refuse(error)
            continue
        at.counts.n_read += 1
        given = ("dialog" if "turns" not in conversation else "turns", *drop)
        whole = {name: value for name, value in conversation.items() if name not in given}
        if as_parlai:
            whole["dialog"] = [turns[place : place + 2] for place in range(0, len(turns), 2)]
        else:
            whole["turns"] = turns
        yield len(turns), [json.dumps(whole, ensure_ascii=False)]


def _turns_of(
    conversation: Dict[str, Any], to_format: str, drop: Sequence[str], at: Bookmark
) -> List[Dict[str, object]]:
    """The turns of a conversation, as they are to be written."""
    as_parlai = to_format == "parlai-conversations"
    speaker_field = "id" if as_parlai else "speaker"
    own = ("speaker" if "turns" in conversation else "id", "text", *drop)
    turns: List[Dict[str, object]] = []
    for speaker, text, turn in conversation_turns(conversation, at):
        if speaker is None:
            at.leave_out(CONTEXT)
            continue
        others = {name: value for name, value in turn.items() if name not in own}
        if speaker_field in others or (as_parlai and speaker == "context"):
            what = f"the field '{speaker_field}'" if speaker_field in others else "the name"
            problem = f"turn {len(turns) + 1}: {what} has another meaning in '{to_format}'"
            raise at.error(f"{problem}; rename or --drop it")
        turns.append({speaker_field: speaker, "text": text, **others})
    return turns
