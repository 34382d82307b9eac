"""Read and write ParlAI's text format: one message per line, `key:value` fields between tabs."""

import difflib
import re
from functools import lru_cache
from typing import Any, Iterator, List, Optional

from ..errors import DataError
from ..messages import Episode, Message
from .candidates import check_candidates
from .context import Bookmark, tolerance
from .text_file import File, LostLine, read_lines
from .wording import short

LISTS = ("labels", "label_candidates", "text_candidates")
FIELDS = (*LISTS, "text", "id", "episode_done", "reward")
TRUTH = {"true": True, "1": True, "false": False, "0": False}
# Other names that people use for the fields, without punctuation.
ALIASES = {
    **dict.fromkeys(["candidate", "candidates", "cands", "labelcands"], "label_candidates"),
    **dict.fromkeys(["done", "episodeend", "endofepisode", "episodefinished"], "episode_done"),
    "evallabel": "labels",
    "textcands": "text_candidates",
}
# Matches a line that cannot be read but ends an episode.
LAST = re.compile(r"(^|\t)episode_done:(true|1)(\t|$)", re.IGNORECASE)

HINT = r"in this format, \n, \t and __PIPE__ mean a line end, a tab and a bar"
# ParlAI's order of fields; other fields come after these.
ORDER = ("source_id", "text", "labels", "label_candidates", "episode_done", "reward")


def read_parlai_text(path: File, at: Optional[Bookmark] = None) -> Iterator[Episode]:
    """Yield the episodes of one file.

    path (File): The file.
    at (Optional[Bookmark]): Position to begin at; moved along.
    RAISES (DataError): With the line, if a line breaks the format, has no text or no
        labels, or a label that is not among its candidates.
    """
    at = at or Bookmark()
    episode: Episode = []
    number, is_bad = at.count, False
    for line_number, line in read_lines(path, at, with_lost=True):
        if not line:
            continue
        if not episode and not is_bad:
            at.before(number)
        try:
            if isinstance(line, LostLine):
                raise line.error
            message = _message(line, at)
            check_candidates(message, path, line_number)
        except DataError as error:
            at.refuse(error, is_same=is_bad)
            # The whole episode is left out, because without this turn it would be a different one.
            is_bad, is_last = True, bool(LAST.search(line))
        else:
            is_last = message.pop("episode_done", False)
            message["id"] = f"{number}/{len(episode)}"
            if not episode:
                at.lines = []
            episode.append(message)
            at.lines.append(line_number)
        if is_last:
            if not is_bad:
                yield episode
                number += 1
            episode, is_bad = [], False
    if episode and not is_bad:
        if not number and len(episode) > 1:
            text = "no line has episode_done:True, so all lines are one episode"
            at.counts.note = f"{text} of {len(episode):,} turns"
        yield episode
    elif not number:
        raise DataError(path, "holds no examples: all lines are empty")


def _message(line: str, at: Bookmark) -> Message:
    message = Message()
    for field in line.split("\t"):
        key, colon, value = field.partition(":")
        if not colon:
            raise at.error(f"expected key:value between tabs, found {short(field)}")
        meant = _intended_field(key)
        if meant:
            text = f"the field '{key}' is unknown; did you mean '{meant}'?"
            raise at.error(f"{text} If not, rename it")
        if key in message or (key == "id" and "source_id" in message):
            raise at.error(f"the field '{key}' occurs twice")
        message["source_id" if key == "id" else key] = _value(key, value, at)
    if "eval_labels" in message:
        raise at.error("has 'eval_labels': write 'labels' in all splits")
    if tolerance().unlabelled and message.get("labels") == [""]:
        del message["labels"]
    for key in ("text",) if tolerance().unlabelled else ("text", "labels"):
        if key not in message:
            hint = f"add {key}:... to the line"
            if f" {key}:" in line:
                hint = f"put a tab, not spaces, before {key}:..."
            raise at.error(f"the field '{key}' is missing; {hint}")
    return message


@lru_cache(maxsize=1 << 10)
def _intended_field(key: str) -> str:
    """Return the known field that an unknown name is a misspelling of; "" if there is none."""
    word = re.sub(r"[\W_]", "", key).lower()
    if key in FIELDS or not word.isalpha():
        return ""
    words = {name.replace("_", ""): name for name in FIELDS}
    found = difflib.get_close_matches(word, words, 1, 0.82) if len(word) > 3 else [word]
    return ALIASES.get(word) or words.get(found[0] if found else "", "")


def _value(key: str, value: str, at: Bookmark) -> Any:
    if key in LISTS:
        return [_unescaped(part) for part in value.split("|")]
    if key == "episode_done":
        word = value.strip().lower()
        if word not in TRUTH:
            raise at.error(f"'episode_done' is {short(value)}: write True or False")
        return TRUTH[word]
    if key == "reward":
        try:
            return int(value) if value.lstrip("+-").isdecimal() else float(value)
        except ValueError:
            raise at.error(f"'reward' is {short(value)}: write a number") from None
    return _unescaped(value)


def _unescaped(value: str) -> str:
    if "\\" not in value and "__" not in value:
        return value
    return value.replace("\\t", "\t").replace("\\n", "\n").replace("__PIPE__", "|")


def parlai_lines(episode: Episode, name: str) -> List[str]:
    """Return the lines of an episode in ParlAI's text format, one per message.

    RAISES (ValueError): If the format cannot hold a field so that the same value is read back.
    """
    lines = []
    for message in [*episode[:-1], Message(episode[-1], episode_done=True)]:
        fields = [field for field in ORDER if field in message]
        fields += [field for field in message if field not in (*ORDER, "id")]
        values = {"id" if field == "source_id" else field: message[field] for field in fields}
        for key, value in values.items():
            if set(key) & set("\t\n:") or _intended_field(key) or key == "eval_labels":
                raise ValueError(f"{short(key)} cannot be the name of a field there")
            back = _value(key, _escaped(value), Bookmark())
            if back != value:
                text = f"'{key}' {short(value, 40)} would be read as {short(back, 40)}"
                raise ValueError(f"{text} ({HINT})")
        lines.append("\t".join(f"{key}:{_escaped(value)}" for key, value in values.items()))
        if "\0" in lines[-1] or lines[-1].endswith("\r"):
            raise ValueError("it has a NUL character, or a CR before a line end")
    return lines


def _escaped(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "|".join(_escaped(part).replace("|", "__PIPE__") for part in value)
    return str(value).replace("\t", "\\t").replace("\n", "\\n")
