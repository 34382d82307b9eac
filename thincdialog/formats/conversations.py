"""Read and write conversations in JSON lines, as turns with speakers or in ParlAI's form."""

import json
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..errors import DataError
from ..messages import PARTNER, SELF, SILENCE, Episode, Message, Turn
from .context import Bookmark, tolerance
from .spellings import find_slip
from .text_file import File, read_json_lines
from .wording import kind, nearest, short

Said = Tuple[str, str]  # Speaker and text.


class Conversation(NamedTuple):
    """Hold one conversation as it was read.

    name (str): Name of the conversation.
    said (List[Said]): The turns.
    background (Sequence[str]): Lines to put before the first text.
    system (Sequence[str]): System messages before the first turn.
    turns (Sequence[Any]): Each turn in `said` as it is in the file: an object of JSON lines, or
        the location of a value.
    context_only (Sequence[int]): Indexes in `said` of turns that are context only, never labels.
    fields (Dict[str, Any]): The whole object of the conversation, if it is in JSON lines.
    """

    name: str
    said: List[Said]
    background: Sequence[str] = ()
    system: Sequence[str] = ()
    turns: Sequence[Any] = ()
    context_only: Sequence[int] = ()
    fields: Dict[str, Any] = {}


# Get the speaker and the text of a turn.
SPEAKER, TEXT = itemgetter(0), itemgetter(1)

# Fields of conversations and their turns that have a meaning here.
OWN = ("id", "speaker", "text", "turns", "dialog")

# Sides that need no name, see ``Conversations``.
SIDES = ("first", "second", "both")

# Turns with which ParlAI's conversations may begin, and which are left out.
CONTEXT = "turns of the speaker 'context'"

# Names of the two speakers if episodes are written as conversations.
ASKS, ANSWERS = "A", "B"


def read_conversations(
    path: File, label_speaker: str = "second", at: Optional[Bookmark] = None
) -> Iterator[Episode]:
    """Yield the episodes of one file.

    path (File): The file.
    label_speaker (str): Speaker whose turns are the labels, see ``Conversations``.
    at (Optional[Bookmark]): Position to begin at; moved along.
    RAISES (DataError): With the line, if a conversation is malformed; without, if no
        conversation has a turn to answer and an answer.
    """
    at = at or Bookmark()
    at.leave_out("names of speakers")
    return spoken_episodes(_counted(read_turns(path, at), at), label_speaker, path, at)


def _counted(conversations: Iterable[Conversation], at: Bookmark) -> Iterator[Conversation]:
    """Yield the same conversations, and count the fields that are not read."""
    for one in conversations:
        if at.left_out is not None:
            others = (field for field in one.fields if field not in OWN)
            at.left_out.update(f"the field '{field}' of conversations" for field in others)
            others = (field for turn in one.turns for field in turn if field not in OWN)
            at.left_out.update(f"the field '{field}' of turns" for field in others)
        yield one


def read_turns(path: File, at: Bookmark) -> Iterator[Conversation]:
    """Return an iterator over the conversations of one file.

    RAISES (DataError): With the line, if a conversation is malformed.
    """

    def made(line: Tuple[int, Dict[str, Any]]) -> Conversation:
        at.before()
        return conversation_in(line[1], at, line[0])

    return at.try_each(made, read_json_lines(path, at))


def conversation_in(row: Dict[str, Any], at: Bookmark, number: int = 0) -> Conversation:
    """Return the conversation in an object of JSON. Turns of ParlAI's speaker `context` are left
    out.

    row (Dict[str, Any]): With `turns`, or with ParlAI's `dialog`.
    at (Bookmark): Position of the conversation.
    number (int): Its name, if it has no `id`.
    RAISES (DataError): If the conversation is malformed.
    """
    turns: Any
    if "turns" in row:
        turns, speaker_field = row["turns"], "speaker"
        if not isinstance(turns, list):
            raise at.error(f"'turns' must be a list, found {kind(turns)}")
    elif "dialog" in row:
        pairs, speaker_field = row["dialog"], "id"
        if not isinstance(pairs, list) or not all(isinstance(pair, list) for pair in pairs):
            raise at.error("'dialog' must be a list of lists of turns")
        turns = list(chain.from_iterable(pairs))
    else:
        hint = nearest("turns", [*row]) or nearest("dialog", [*row])
        raise at.error(f"has neither 'turns' nor 'dialog'{hint} (see thincdialog.Conversations.v1)")
    said: List[Said] = []
    for place, turn in enumerate(turns, start=1):
        if not isinstance(turn, dict):
            raise at.error(f"turn {place} must be an object, found {kind(turn)}")
        speaker: Any = turn.get(speaker_field)
        text: Any = turn.get("text")
        speaker = str(speaker) if type(speaker) is int else speaker
        for field, value in ((speaker_field, speaker), ("text", text)):
            if not isinstance(value, str):
                what = f"is {kind(value)}, not a string" if field in turn else "is missing"
                raise at.error(f"'{field}' of turn {place} {what}")
        if speaker != "context" or speaker_field != "id":
            said.append((speaker, text))
    n_left_out = len(turns) - len(said)
    if n_left_out:
        at.leave_out(CONTEXT, n_left_out)
        turns = [turn for turn in turns if turn["id"] != "context"]
    name = row.get("id")
    return Conversation(str(number if name is None else name), said, turns=turns, fields=row)


def spoken_episodes(
    conversations: Iterable[Conversation],
    label_speaker: str,
    path: File,
    at: Bookmark,
    system_turns: str = "field",
) -> Iterator[Episode]:
    """Yield the episodes of a file's conversations: none, one or several per conversation.

    conversations (Iterable[Conversation]): The conversations of the file.
    label_speaker (str): Speaker whose turns are the labels, see ``Conversations``.
    path (File): The file.
    at (Bookmark): Position where reading begins.
    system_turns (str): "context", "field" or "drop", see `thincdialog.JSONLayout.v1`.
    RAISES (DataError): If the whole file gives no episode.
    """
    speakers: Dict[str, None] = {}
    counts = at.counts
    counts.unit = "conversations"
    checked = at.try_each(
        partial(_checked, label_speaker=label_speaker, path=path, at=at), conversations
    )
    for name, said, background, system, _, context_only, _ in checked:
        if len(speakers) < 100:
            speakers.update(dict.fromkeys(map(SPEAKER, said)))
        is_left_out = True
        for episode, left_out in _episodes(said, label_speaker, name, at, context_only):
            if background:
                episode[0]["text"] = "\n".join([*background, episode[0]["text"]])
            for message in episode if system and system_turns != "drop" else ():
                message["system"] = "\n".join(system)
            if system and system_turns == "context":
                episode[0]["context"] = [(PARTNER, text) for text in system]
            if left_out:
                at.leave_out("labels of weight 0", len(left_out))
                counts.note = "replies of weight 0 are context only"
            for part in _parts_to_learn(episode, left_out) if left_out else [episode]:
                is_left_out = False
                yield part
        # Count only now: a mark that was made before leads to the beginning of the conversation.
        counts.n_read += 1
        counts.n_without += is_left_out
    if at.is_part or counts.n_without < counts.n_read:
        return
    text = "holds no examples: no conversation has a turn and an answer to it"
    if not counts.n_read:
        text = "holds no examples: all lines are blank"
    elif label_speaker not in SIDES:
        known = ", ".join(short(speaker) for speaker in list(speakers)[:8]) or "none"
        hint = f"{nearest(label_speaker, list(speakers))}; speakers here: {known}"
        text = f"label_speaker '{label_speaker}' does not occur in this file{hint}"
    raise DataError(path, text)


def _checked(one: Conversation, label_speaker: str, path: File, at: Bookmark) -> Conversation:
    """Return the same conversation.

    RAISES (DataError): If a speaker differs from the label speaker (if that is a name; otherwise,
        from another speaker of the conversation) only by case or blanks.
    """
    main = None if label_speaker in SIDES else label_speaker
    slip, text = find_slip(dict.fromkeys(map(SPEAKER, one.said)), main)
    if text:
        turn = one.turns[[who for who, _ in one.said].index(slip)]
        # Only turns of a layout know their lines.
        line = getattr(turn, "line", at.end)
        raise DataError(path, f"conversation {short(one.name)}: {text}", line)
    return one


def _parts_to_learn(episode: Episode, left_out: Set[int]) -> Iterator[Episode]:
    """Split an episode at the messages with these numbers. All messages before a part become its
    context, including those at which the episode is split."""
    history: List[Turn] = list(episode[0].get("context", ()))
    for is_left_out, some in groupby(enumerate(episode), lambda pair: pair[0] in left_out):
        part = [message for _, message in some]
        if history and not is_left_out:
            part[0]["context"] = list(history)
        if not is_left_out:
            yield part
        for message in part:
            history += [(PARTNER, message["text"])] * (message["text"] != SILENCE)
            history += ((SELF, label) for label in message.get("labels", ())[:1])


def _episodes(
    said: List[Said], label_speaker: str, name: str, at: Bookmark, context_only: Sequence[int]
) -> Iterator[Tuple[Episode, Set[int]]]:
    """Yield each episode, with the numbers of its messages whose labels have weight 0."""
    is_name = label_speaker not in SIDES
    if is_name:
        if not tolerance().unlabelled and all(who != label_speaker for who, _ in said):
            at.leave_out("turns without an answer", len(said))
            return
        said = [("label" if who == label_speaker else "", text) for who, text in said]
    sides = joined(said)
    by_side = enumerate(groupby(said, SPEAKER)) if context_only else ()
    side_of = [side for side, (_, some) in by_side for _ in some]
    texts = [text for _, text in sides]
    if label_speaker == "both":  # Every turn is a label once.
        named = {f"{name}#first": [SILENCE, *texts], f"{name}#second": texts}
    else:
        is_opened = any(who for who, _ in sides[:1]) if is_name else label_speaker == "first"
        named = {name: [SILENCE, *texts] if is_opened else texts}
    for name, texts in named.items():
        if len(texts) > 1:
            episode = [
                Message(id=f"{name}/{turn}", text=text, labels=[label])
                for turn, (text, label) in enumerate(zip(texts[::2], texts[1::2]))
            ]
            places = [side_of[number] + len(texts) - len(sides) for number in context_only]
            yield episode, {place // 2 for place in places if place % 2}
        elif texts and tolerance().unlabelled:
            yield [Message(id=f"{name}/0", text=texts[0])], set()
    at.leave_out("boundaries between joined turns", len(said) - len(sides))
    if said and label_speaker != "both":
        at.leave_out("turns without an answer", len(texts) % 2)


def joined(said: Iterable[Tuple[Any, str]]) -> List[Tuple[Any, str]]:
    """Join neighbouring turns of the same speaker."""
    return [(who, "\n".join(map(TEXT, some))) for who, some in groupby(said, SPEAKER)]


def conversation_line(episode: Episode, name: str) -> List[str]:
    """Return an episode as one line of JSON that holds a conversation. Silence before the opening
    is left out.

    name (str): The `id` of the conversation.
    RAISES (ValueError): If a turn has several labels, or fields that the format cannot hold.
    """
    fields = {field for turn in episode for field in turn}
    surplus = sorted(fields - {"id", "source_id", "text", "labels"})
    if surplus:
        text = f"the format has no place for the field '{surplus[0]}'"
        raise ValueError(f"{text}; --drop {','.join(surplus)} leaves it out")
    n_labels = max(len(turn["labels"]) for turn in episode)
    if n_labels > 1:
        text = f"the format holds one label, but there are {n_labels}"
        raise ValueError(f"{text}; --drop labels keeps the first")
    turns = [
        {"speaker": who, "text": text}
        for turn in episode
        for who, text in ((ASKS, turn["text"]), (ANSWERS, turn["labels"][0]))
    ]
    first = 1 if episode[0]["text"] == SILENCE else 0
    return [json.dumps({"id": name, "turns": turns[first:]}, ensure_ascii=False)]


def conversation_name(episode: Episode) -> Optional[str]:
    """Return the common part of the ids of an episode's examples (`name/0`, `name/1`, ...)."""
    names = [message.get("source_id") for message in episode]
    if not isinstance(names[0], str):
        return None
    name = names[0].removesuffix("/0")
    in_order = [f"{name}/{turn}" for turn in range(len(names))]
    return name if names == in_order or set(names) == {name} else None
