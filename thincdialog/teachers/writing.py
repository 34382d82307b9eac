"""Episodes as lines of each text format, the counterpart of the readers."""

import json
from typing import Any, Dict, List, Optional

from ..messages import SILENCE, Episode, Message

# ParlAI's order; other fields stand behind.
PARLAI_FIELDS = ("source_id", "text", "labels", "label_candidates", "episode_done", "reward")

# Who asks and who answers, where episodes are written as conversations.
ASKS, ANSWERS = "A", "B"


def parlai_lines(episode: Episode) -> List[str]:
    """ParlAI's text format, a line for each message."""
    lines = []
    for place, message in enumerate(episode, start=1):
        message = Message(message)
        message.pop("id", None)
        if place == len(episode):
            message["episode_done"] = True
        names = [name for name in PARLAI_FIELDS if name in message]
        names += [name for name in message if name not in PARLAI_FIELDS]
        fields = [
            f"{'id' if name == 'source_id' else name}:{_parlai_value(message[name])}"
            for name in names
        ]
        lines.append("\t".join(fields))
    return lines


def _parlai_value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "|".join(_parlai_value(part).replace("|", "__PIPE__") for part in value)
    return str(value).replace("\t", "\\t").replace("\n", "\\n")


def numbered_lines(episode: Episode) -> List[str]:
    """fbdialog's and bAbI's numbered lines; the lines of a text before its last one
    are statements with a number of their own."""
    lines: List[str] = []
    for message in episode:
        *statements, question = message["text"].split("\n")
        # The reader takes blanks off both ends of a line: such a text keeps one line.
        if any(part != part.strip() for part in statements) or question != question.strip():
            statements, question = [], message["text"].replace("\n", "\\n")
        answers = "|".join(message["labels"]).replace("\n", "\\n")
        support = message.get("supporting")
        third = message.get("reward", "") if support is None else " ".join(map(str, support))
        candidates = "|".join(message.get("label_candidates", ())).replace("\n", "\\n")
        cells = [question, answers, str(third), candidates]
        while not cells[-1] and len(cells) > 2:
            cells.pop()
        for text in [*statements, "\t".join(cells)]:
            lines.append(f"{len(lines) + 1} {text}")
    return lines


def conversation_line(episode: Episode, name: str) -> List[str]:
    """A conversation in JSON; silence before an opening is left out."""
    turns = [{"speaker": speaker, "text": text} for speaker, text in _said(episode)]
    return [as_json({"id": name, "turns": turns})]


def parlai_conversation_line(episode: Episode, name: str) -> List[str]:
    """The same as ParlAI writes it."""
    said = _said(episode)
    pairs: List[List[Dict[str, str]]] = [[]]
    for speaker, text in said:
        pairs[-1].append({"id": speaker, "text": text})
        if speaker == ANSWERS:
            pairs.append([])
    return [as_json({"id": name, "dialog": [pair for pair in pairs if pair]})]


def _said(episode: Episode) -> List[Any]:
    said = []
    for place, message in enumerate(episode):
        if place or message["text"] != SILENCE:
            said.append((ASKS, message["text"]))
        said.append((ANSWERS, message["labels"][0]))
    return said


def labelled_json_line(episode: Episode) -> List[str]:
    """A labelled text in JSON, with all other fields."""
    (message,) = episode
    row = {"id": message["source_id"]} if "source_id" in message else {}
    labels = message["labels"]
    row.update(text=message["text"], label=labels[0] if len(labels) == 1 else labels)
    others = message.keys() - {"id", "source_id", "text", "labels"}
    return [as_json({**row, **{name: message[name] for name in message if name in others}})]


def csv_line(episode: Episode) -> List[str]:
    """A row of text and label, in quotes where need be."""
    (message,) = episode
    return [",".join(_quoted(cell) for cell in (message["text"], message["labels"][0]))]


def tsv_line(episode: Episode) -> List[str]:
    """A row of text and label, as they are."""
    (message,) = episode
    return ["\t".join((message["text"], message["labels"][0]))]


def _quoted(cell: str) -> str:
    if not cell or any(sign in cell for sign in ',"\r\n') or cell != cell.strip():
        return '"' + cell.replace('"', '""') + '"'
    return cell


def as_json(value: Any) -> str:
    """One line of JSON, in letters that a reader can read."""
    return json.dumps(value, ensure_ascii=False)


def conversation_name(episode: Episode) -> Optional[str]:
    """What the ids of an episode's examples (`name/0`, `name/1`, ...) have in common."""
    names = [message.get("source_id") for message in episode]
    if not isinstance(names[0], str):
        return None
    name = names[0].removesuffix("/0")
    in_order = [f"{name}/{turn}" for turn in range(len(names))]
    return name if names == in_order or set(names) == {name} else None
