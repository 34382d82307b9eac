"""Reads the bodies of requests, and says which field is wrong."""

import math
from itertools import groupby
from operator import itemgetter
from typing import Any, Dict, List, Optional

from ..errors import DialogError
from ..formats.wording import kind, short
from ..messages import PARTNER, SELF, Message
from .limits import Limits

# Roles of messages that are read, and of others.
ROLES = {"user": PARTNER, "assistant": SELF}
IGNORED = ("system", "developer", "tool", "function")


class Refusal(DialogError):
    """A request that is not answered.

    status (int): Of HTTP.
    message (str): What is wrong, as a sentence.
    param (Optional[str]): The field that is wrong: ``messages[0].content``.
    """

    def __init__(self, status: int, message: str, param: Optional[str] = None):
        super().__init__(message)
        self.status, self.param = status, param


def conversation_in(body: Dict[str, Any], limits: Limits) -> Message:
    """Read the conversation of a chat completion. Neighbouring messages of one side are joined, as
    in training data.

    RAISES (Refusal): If it is malformed or too large.
    """
    sides, texts = [], []
    for number, message in enumerate(_list_in(body, "messages")):
        name = f"messages[{number}]"
        if not isinstance(message, dict):
            raise _wrong(name, message, "an object")
        role = message.get("role")
        if role in IGNORED:
            continue
        if role not in list(ROLES):
            raise _wrong(f"{name}.role", role, f"one of {', '.join((*ROLES, *IGNORED))}")
        sides.append(ROLES[role])
        content = message.get("content")
        if content is None and role == "assistant":  # It may have called a tool instead.
            content = ""
        if isinstance(content, list):
            content = "".join(_texts_of(content, f"{name}.content"))
        if not isinstance(content, str):
            raise _wrong(f"{name}.content", content, "a string, or a list of parts")
        texts.append(content)
    said = zip(sides, _limited(texts, "messages", limits))
    turns = [(side, "\n".join(text for _, text in of)) for side, of in groupby(said, itemgetter(0))]
    if not turns or turns[-1][0] == SELF:
        raise Refusal(400, "The last message must be the user's.", "messages")
    return Message(text=turns[-1][1], context=turns[:-1], agent="user")


def texts_in(body: Dict[str, Any], name: str, limits: Limits) -> List[str]:
    """Read a text, or a list of texts; each may be an object with a `text`.

    RAISES (Refusal): If it is malformed or too large.
    """
    given = [body[name]] if isinstance(body.get(name), str) else _list_in(body, name)
    return _limited(_texts_of(given, name), name, limits)


def option_in(body: Dict[str, Any], name: str, default: Any, most: float = math.inf) -> Any:
    """Read an option of the type of its default: true or false, or a whole number of 1 or more.
    Null is the default.

    RAISES (Refusal): If it is something else, or greater than ``most``.
    """
    value = body.get(name)
    if value is None:
        return default
    is_flag = isinstance(default, bool)
    if type(value) is not type(default) or not (is_flag or 1 <= value <= most):
        limit = "1 or more" if most == math.inf else f"from 1 to {most}"
        raise _wrong(name, value, "true or false" if is_flag else f"a whole number {limit}")
    return value


def _list_in(body: Dict[str, Any], name: str) -> List[Any]:
    value = body.get(name)
    if not isinstance(value, list) or not value:
        raise _wrong(name, value, "a list of one or more")
    return value


def _texts_of(values: List[Any], name: str) -> List[str]:
    texts: List[Any] = [value.get("text") if isinstance(value, dict) else value for value in values]
    for number, (value, text) in enumerate(zip(values, texts)):
        if not isinstance(text, str):
            wanted = 'a string, or {"type": "text", "text": "..."}'
            raise _wrong(f"{name}[{number}]", value, wanted)
    return texts


def _limited(texts: List[str], name: str, limits: Limits) -> List[str]:
    found = {"parts": len(texts), "characters": sum(map(len, texts))}
    for unit, most in (("parts", limits.max_messages), ("characters", limits.max_characters)):
        if found[unit] > most:
            text = f"'{name}' has {found[unit]:,} {unit}, and this server takes {most:,}."
            raise Refusal(413, text, name)
    return texts


def _wrong(name: str, value: Any, wanted: str) -> Refusal:
    found = "missing" if value is None else f"{kind(value)} ({short(value)})"
    return Refusal(400, f"'{name}' is {found}, expected {wanted}.", name)
