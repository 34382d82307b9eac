"""Conversations in JSONL, as turns with speakers or as ParlAI writes them."""

from collections import Counter
from functools import partial
from itertools import chain
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from ..errors import DataError
from ..messages import SILENCE, Episode, Message
from ..registry import registry
from .arguments import candidate_file, file_sources
from .bookmark import Bookmark
from .reading import PathOrPaths, kind, nearest, read_json_lines, short
from .teacher import Teacher

Said = Tuple[str, str]  # Speaker and text.

# Fields of conversations and their turns that have a meaning here.
OWN = ("id", "speaker", "text", "turns", "dialog")


@registry.teachers("thincdialog.Conversations.v1")
def Conversations(
    train: Optional[PathOrPaths] = None,
    dev: Optional[PathOrPaths] = None,
    test: Optional[PathOrPaths] = None,
    label_speaker: str = "second",
    mutators: Optional[Union[List[Any], Dict[str, Any]]] = None,
    candidates: Optional[str] = None,
    streaming: bool = False,
) -> Teacher:
    """One conversation a line: `{"id": ..., "turns": [{"speaker": ..., "text": ...}]}`,
    or ParlAI's `{"dialog": [[{"id": ..., "text": ...}, ...], ...]}`.

    Consecutive turns of one speaker become one, joined by a line end; likewise the
    turns between two of a named label speaker. Where the label side opens the
    conversation, its first turn answers `__SILENCE__` (see
    `thincdialog.WithoutOpenings.v1`). Turns of ParlAI's speaker `context` are left out.

    train (Optional[Union[str, List[str]]]): File or files; plain or gzip'd.
    dev (Optional[Union[str, List[str]]]): The same for the split `dev`.
    test (Optional[Union[str, List[str]]]): The same for the split `test`.
    label_speaker (str): Whose turns are the labels: "second" (every second turn),
        "first" (the others), "both" (two episodes a conversation), or the name of a
        speaker, who then answers all the others.
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one a line.
    streaming (bool): Read the files for every epoch instead of holding them.
    """
    return Teacher(
        file_sources(partial(read_conversations, label_speaker=label_speaker), train, dev, test),
        candidates=candidate_file(candidates),
        mutators=mutators,
        streaming=streaming,
        # With both sides every turn is a label once, and most are a text as well.
        text_fields=("labels",) if label_speaker == "both" else ("text", "labels"),
    )


def read_conversations(
    path: str,
    label_speaker: str = "second",
    left_out: Optional[Counter[str]] = None,
    at: Optional[Bookmark] = None,
) -> Iterator[Episode]:
    """The episodes of one file.

    path (str): The file.
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
    for number, conversation in read_json_lines(path, at):
        at.before()
        n_conversations += 1
        said = [
            (speaker, text) for speaker, text, _ in conversation_turns(conversation, path, number)
        ]
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


def speaker_episodes(
    said: List[Said],
    label_speaker: str,
    name: str,
    left_out: Optional[Counter[str]] = None,
) -> Iterator[Episode]:
    """The episodes of one conversation, none or up to two.

    said (List[Tuple[str, str]]): Speaker and text of each turn.
    label_speaker (str): Whose turns are the labels, see ``Conversations``.
    name (str): What the examples' ids begin with.
    left_out (Optional[Counter]): Counts what is no part of an episode, by its kind.
    """
    left_out = Counter() if left_out is None else left_out
    if label_speaker in ("first", "second", "both"):
        sides = _merged(said)
        texts = [text for _, text in sides]
        if label_speaker == "both":
            yield from _paired([SILENCE, *texts], f"{name}#first")
            yield from _paired(texts, f"{name}#second")
        else:
            texts = [SILENCE, *texts] if label_speaker == "first" else texts
            yield from _paired(texts, name)
    elif any(speaker == label_speaker for speaker, _ in said):
        sides = _merged([("" if who != label_speaker else "label", text) for who, text in said])
        texts = [text for _, text in sides]
        texts = [SILENCE, *texts] if sides[0][0] else texts
        yield from _paired(texts, name)
    else:
        left_out["turns that nobody answers"] += len(said)
        return
    left_out["borders between turns that are joined to one"] += len(said) - len(sides)
    if label_speaker != "both" and said:  # Of both sides, every turn is a label once.
        left_out["turns that nobody answers"] += len(texts) % 2


def _paired(texts: List[str], name: str) -> Iterator[Episode]:
    """The episode in which every second text answers the one before, if there is any."""
    if len(texts) > 1:
        yield [
            Message(id=f"{name}/{turn}", text=text, labels=[label])
            for turn, (text, label) in enumerate(zip(texts[::2], texts[1::2]))
        ]


def _merged(said: List[Said]) -> List[Said]:
    """Consecutive turns of one speaker joined by a line end."""
    merged: List[Said] = []
    for speaker, text in said:
        if merged and merged[-1][0] == speaker:
            merged[-1] = (speaker, f"{merged[-1][1]}\n{text}")
        else:
            merged.append((speaker, text))
    return merged


def _note_fields(conversation: Dict[str, Any], left_out: Counter[str]) -> None:
    left_out.update(
        f"the field '{name}' of conversations" for name in conversation if name not in OWN
    )
    # What was read of both; the other may be anything.
    turns = conversation["turns"] if "turns" in conversation else chain(*conversation["dialog"])
    for turn in turns:
        left_out.update(f"the field '{name}' of turns" for name in turn if name not in OWN)
        left_out["turns of the speaker 'context'"] += turn.get("id") == "context"


def conversation_turns(
    conversation: Dict[str, Any], path: str, number: int
) -> Iterator[Tuple[str, str, Dict[str, Any]]]:
    """Speaker, text and JSON object of each turn; ParlAI's speaker `context` is left out.

    conversation (Dict[str, Any]): With `turns`, or with ParlAI's `dialog`.
    path (str): Its file, for error messages.
    number (int): Its line.
    RAISES (DataError): If it is malformed.
    """
    turns: Any
    if "turns" in conversation:
        turns, speaker_field = conversation["turns"], "speaker"
        if not isinstance(turns, list):
            raise DataError(path, f"'turns' must be a list, found {kind(turns)}", number)
    elif "dialog" in conversation:
        pairs, speaker_field = conversation["dialog"], "id"
        if not isinstance(pairs, list) or not all(isinstance(pair, list) for pair in pairs):
            raise DataError(path, "'dialog' must be a list of lists of turns", number)
        turns = list(chain.from_iterable(pairs))
    else:
        hints = (nearest(name, list(conversation)) for name in ("turns", "dialog"))
        hint = next(filter(None, hints), "")
        problem = f"has neither 'turns' nor 'dialog'{hint} (see thincdialog.Conversations.v1)"
        raise DataError(path, problem, number)
    for place, turn in enumerate(turns, start=1):
        if not isinstance(turn, dict):
            raise DataError(path, f"turn {place} must be an object, found {kind(turn)}", number)
        speaker: Any = turn.get(speaker_field)
        text: Any = turn.get("text")
        for field, value in ((speaker_field, speaker), ("text", text)):
            if not isinstance(value, str):
                what = f"is {kind(value)}, not a string" if field in turn else "is missing"
                raise DataError(path, f"'{field}' of turn {place} {what}", number)
        if speaker_field == "speaker" or speaker != "context":
            yield speaker, text, turn


def why_empty(n_conversations: int, label_speaker: str, speakers: List[str]) -> str:
    """Why conversations gave no examples.

    n_conversations (int): Number of conversations that were read.
    label_speaker (str): Whose turns were to be the labels.
    speakers (List[str]): Who speaks in them.
    """
    if not n_conversations:
        return "holds no examples: all lines are blank"
    if label_speaker in ("first", "second", "both") or label_speaker in speakers:
        return "holds no examples: no conversation has a turn and an answer to it"
    known = ", ".join(short(speaker) for speaker in speakers[:8]) or "none"
    hint = nearest(label_speaker, speakers)
    return f"nobody is called label_speaker '{label_speaker}'{hint}; speakers here: {known}"
