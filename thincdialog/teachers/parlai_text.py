"""ParlAI's text format: one message a line, `key:value` fields between tabs."""

from typing import Any, Dict, Iterable, Iterator, List, Optional, Union

from ..errors import DataError
from ..messages import Episode, Message
from ..registry import registry
from .arguments import candidate_file, file_sources
from .bookmark import Bookmark
from .reading import Line, PathOrPaths, check_candidates, nearest, read_lines, short
from .teacher import Teacher

LISTS = ("labels", "label_candidates", "text_candidates")
FIELDS = (*LISTS, "text", "id", "episode_done", "reward")
TRUTH = {"true": True, "1": True, "false": False, "0": False}


@registry.teachers("thincdialog.ParlAIText.v1")
def ParlAIText(
    train: Optional[PathOrPaths] = None,
    dev: Optional[PathOrPaths] = None,
    test: Optional[PathOrPaths] = None,
    mutators: Optional[Union[List[Any], Dict[str, Any]]] = None,
    candidates: Optional[str] = None,
    streaming: bool = False,
) -> Teacher:
    """Dialogues in ParlAI's text format, for instance
    `text:How are you?<TAB>labels:fine|well<TAB>episode_done:True`.

    Lists are split at `|`; `\\t`, `\\n` and `__PIPE__` in a value stand for a tab, a
    line end and a bar. An episode ends at `episode_done:True` or with the file; empty
    lines mean nothing. Stricter than ParlAI: `episode_done:False` is false, and a
    malformed field is an error. The file's `id`, which need not be unique, becomes
    `source_id`. Any field that is not ParlAI's own stays a text.

    train (Optional[Union[str, List[str]]]): File or files; plain or gzip'd.
    dev (Optional[Union[str, List[str]]]): The same for the split `dev`.
    test (Optional[Union[str, List[str]]]): The same for the split `test`.
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one a line.
    streaming (bool): Read the files for every epoch instead of holding them.
    """
    return Teacher(
        file_sources(read_parlai_text, train, dev, test),
        candidates=candidate_file(candidates),
        mutators=mutators,
        streaming=streaming,
    )


def read_parlai_text(
    path: str, lines: Optional[Iterable[Line]] = None, at: Optional[Bookmark] = None
) -> Iterator[Episode]:
    """The episodes of one file.

    path (str): The file.
    lines (Optional[Iterable[Line]]): Its lines with their numbers, if they are at hand.
    at (Optional[Bookmark]): Lies where to begin, and is moved along.
    RAISES (DataError): With the line, if a line breaks the format, has no text or no
        labels, or a label that is not among its candidates.
    """
    at = at or Bookmark()
    episode: Episode = []
    number = at.count
    for line_number, line in read_lines(path, at) if lines is None else lines:
        if not line:
            continue
        message = _message(line, path, line_number)
        message["id"] = f"{number}/{len(episode)}"
        is_last = message.pop("episode_done", False)
        episode.append(message)
        if is_last:
            yield episode
            episode, number = [], number + 1
            at.behind(number)
    if episode:
        yield episode
    elif not number:
        raise DataError(path, "holds no examples: all lines are empty")


def _message(line: str, path: str, number: int) -> Message:
    message = Message()
    for field in line.split("\t"):
        key, colon, value = field.partition(":")
        if not colon:
            text = f"expected key:value between tabs, found {short(field)}"
            raise DataError(path, text, number)
        if key in message or (key == "id" and "source_id" in message):
            raise DataError(path, f"the field '{key}' is there twice", number)
        if key == "id":
            key = "source_id"
        message[key] = _value(key, value, path, number)
    if "eval_labels" in message:
        text = "has 'eval_labels': write 'labels', whatever the split"
        raise DataError(path, text, number)
    for key in ("text", "labels"):
        if key not in message:
            hint = nearest(key, [name for name in message if name not in FIELDS])
            text = f"the field '{key}' is missing{hint or f'; add {key}:... to the line'}"
            raise DataError(path, text, number)
    if "label_candidates" in message:
        check_candidates(message["labels"], message["label_candidates"], path, number)
    return message


def _value(key: str, value: str, path: str, number: int) -> Any:
    if key in LISTS:
        return [_unescaped(part) for part in value.split("|")]
    if key == "episode_done":
        if value.lower() not in TRUTH:
            text = f"'episode_done' is {short(value)}: write True or False"
            raise DataError(path, text, number)
        return TRUTH[value.lower()]
    if key == "reward":
        try:
            return int(value) if value.lstrip("+-").isdecimal() else float(value)
        except ValueError:
            text = f"'reward' is {short(value)}: write a number"
            raise DataError(path, text, number) from None
    return _unescaped(value)


def _unescaped(value: str) -> str:
    if "\\" not in value and "__" not in value:
        return value
    return value.replace("\\t", "\t").replace("\\n", "\n").replace("__PIPE__", "|")
