"""Conversations in JSON lines, as turns with speakers or as ParlAI writes them."""

import json
from collections import Counter
from itertools import chain
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ..errors import DataError
from ..messages import SILENCE, Episode, Message
from .bookmark import Bookmark
from .text_file import File, read_json_lines
from .wording import kind, nearest, short

Said = Tuple[str, str]  # Speaker and text.

# Fields of conversations and their turns that have a meaning here.
OWN = ("id", "speaker", "text", "turns", "dialog")

# Sides that need no name, see ``Conversations``.
SIDES = ("first", "second", "both")

# Who asks and who answers, where episodes are written as conversations.
ASKS, ANSWERS = "A", "B"


def read_conversations(
    path: File,
    label_speaker: str = "second",
    left_out: Optional[Counter[str]] = None,
    at: Optional[Bookmark] = None,
) -> Iterator[Episode]:
    """The episodes of one file.

    path (File): The file.
    label_speaker (str): Whose turns are the labels, see ``Conversations``.
    left_out (Optional[Counter]): Counts what is no part of an episode, by its kind.
    at (Optional[Bookmark]): Lies where to begin, and is moved along.
    RAISES (DataError): With the line, if a conversation is malformed; without, if no
        conversation has a turn to answer and an answer.
    """
    at = at or Bookmark()
    speakers: Dict[str, None] = {}
    n_conversations = 0
    is_empty = at.is_at_begin
    if left_out is not None:
        left_out["names of speakers"] += 1
    for number, conversation in read_json_lines(path, at):
        at.before()
        n_conversations += 1
        said = [(speaker, text) for speaker, text, _ in conversation_turns(conversation, at)]
        name = conversation.get("id")
        name = str(number) if name is None else str(name)
        if len(speakers) < 100:
            speakers.update((speaker, None) for speaker, _ in said)
        if left_out is not None:
            _note_fields(conversation, left_out)
        for episode in speaker_episodes(said, label_speaker, name, left_out):
            is_empty = False
            yield episode
    if is_empty:
        raise DataError(path, why_empty(n_conversations, label_speaker, list(speakers)))


def conversation_turns(
    conversation: Dict[str, Any], at: Bookmark
) -> Iterator[Tuple[str, str, Dict[str, Any]]]:
    """Speaker, text and JSON object of each turn; ParlAI's speaker `context` is left out.

    conversation (Dict[str, Any]): With `turns`, or with ParlAI's `dialog`.
    at (Bookmark): Where it was read.
    RAISES (DataError): If it is malformed.
    """
    turns: Any
    if "turns" in conversation:
        turns, speaker_field = conversation["turns"], "speaker"
        if not isinstance(turns, list):
            raise at.error(f"'turns' must be a list, found {kind(turns)}")
    elif "dialog" in conversation:
        pairs, speaker_field = conversation["dialog"], "id"
        if not isinstance(pairs, list) or not all(isinstance(pair, list) for pair in pairs):
            raise at.error("'dialog' must be a list of lists of turns")
        turns = list(chain.from_iterable(pairs))
    else:
        hints = (nearest(name, list(conversation)) for name in ("turns", "dialog"))
        hint = f"{next(filter(None, hints), '')} (see thincdialog.Conversations.v1)"
        raise at.error(f"has neither 'turns' nor 'dialog'{hint}")
    for place, turn in enumerate(turns, start=1):
        if not isinstance(turn, dict):
            raise at.error(f"turn {place} must be an object, found {kind(turn)}")
        speaker: Any = turn.get(speaker_field)
        text: Any = turn.get("text")
        for field, value in ((speaker_field, speaker), ("text", text)):
            if not isinstance(value, str):
                what = f"is {kind(value)}, not a string" if field in turn else "is missing"
                raise at.error(f"'{field}' of turn {place} {what}")
        if speaker_field == "speaker" or speaker != "context":
            yield speaker, text, turn


def speaker_episodes(
    said: List[Said], label_speaker: str, name: str, left_out: Optional[Counter[str]] = None
) -> Iterator[Episode]:
    """The episodes of one conversation, none or up to two.

    said (List[Tuple[str, str]]): Speaker and text of each turn.
    label_speaker (str): Whose turns are the labels, see ``Conversations``.
    name (str): What the examples' ids begin with.
    left_out (Optional[Counter]): Counts what is no part of an episode, by its kind.
    """
    left_out = Counter() if left_out is None else left_out
    is_name = label_speaker not in SIDES
    if is_name:
        if all(who != label_speaker for who, _ in said):
            left_out["turns that nobody answers"] += len(said)
            return
        said = [("label" if who == label_speaker else "", text) for who, text in said]
    sides: List[Said] = []
    for who, text in said:
        if sides and sides[-1][0] == who:
            sides[-1] = (who, f"{sides[-1][1]}\n{text}")
        else:
            sides.append((who, text))
    texts = [text for _, text in sides]
    if label_speaker == "both":  # Every turn is a label once.
        yield from _paired([SILENCE, *texts], f"{name}#first")
        yield from _paired(texts, f"{name}#second")
    else:
        if sides[0][0] if is_name else label_speaker == "first":
            texts.insert(0, SILENCE)
        yield from _paired(texts, name)
    left_out["borders between turns that are joined to one"] += len(said) - len(sides)
    if said and label_speaker != "both":
        left_out["turns that nobody answers"] += len(texts) % 2


def _paired(texts: List[str], name: str) -> Iterator[Episode]:
    """The episode in which every second text answers the one before, if there is any."""
    if len(texts) > 1:
        yield [
            Message(id=f"{name}/{turn}", text=text, labels=[label])
            for turn, (text, label) in enumerate(zip(texts[::2], texts[1::2]))
        ]


def _note_fields(conversation: Dict[str, Any], left_out: Counter[str]) -> None:
    others = (name for name in conversation if name not in OWN)
    left_out.update(f"the field '{name}' of conversations" for name in others)
    # What was read of both; the other may be anything.
    turns = conversation["turns"] if "turns" in conversation else chain(*conversation["dialog"])
    for turn in turns:
        left_out.update(f"the field '{name}' of turns" for name in turn if name not in OWN)
        left_out["turns of the speaker 'context'"] += turn.get("id") == "context"


def why_empty(n_conversations: int, label_speaker: str, speakers: List[str]) -> str:
    """Why conversations gave no examples.

    n_conversations (int): Number of conversations that were read.
    label_speaker (str): Whose turns were to be the labels.
    speakers (List[str]): Who speaks in them.
    """
    if not n_conversations:
        return "holds no examples: all lines are blank"
    if label_speaker in SIDES or label_speaker in speakers:
        return "holds no examples: no conversation has a turn and an answer to it"
    known = ", ".join(short(speaker) for speaker in speakers[:8]) or "none"
    hint = nearest(label_speaker, speakers)
    return f"nobody is called label_speaker '{label_speaker}'{hint}; speakers here: {known}"


def conversation_line(episode: Episode, name: str, as_parlai: bool = False) -> List[str]:
    """An episode as a conversation in JSON; silence before an opening is left out.

    name (str): Its `id`.
    as_parlai (bool): Whether it is written as ParlAI does.
    """
    speaker = "id" if as_parlai else "speaker"
    pairs = [
        [{speaker: ASKS, "text": turn["text"]}, {speaker: ANSWERS, "text": turn["labels"][0]}]
        for turn in episode
    ]
    if episode[0]["text"] == SILENCE:
        del pairs[0][0]
    said = {"dialog": pairs} if as_parlai else {"turns": list(chain(*pairs))}
    return [json.dumps({"id": name, **said}, ensure_ascii=False)]


def conversation_name(episode: Episode) -> Optional[str]:
    """What the ids of an episode's examples (`name/0`, `name/1`, ...) have in common."""
    names = [message.get("source_id") for message in episode]
    if not isinstance(names[0], str):
        return None
    name = names[0].removesuffix("/0")
    in_order = [f"{name}/{turn}" for turn in range(len(names))]
    return name if names == in_order or set(names) == {name} else None
