"""Reads the bodies of requests, and says which field is wrong."""

import math
from itertools import groupby
from operator import itemgetter
from typing import Any, Dict, List, Optional, Tuple

from starlette.exceptions import HTTPException

from ..formats.wording import kind, short
from ..messages import PARTNER, SELF, Message
from .limits import Limits

# Roles of messages that are read, and of others.
ROLES = {"user": PARTNER, "assistant": SELF}
IGNORED = ("system", "developer", "tool", "function")


class Refusal(HTTPException):
    """A request that is not answered.

    status (int): Of HTTP.
    message (str): What is wrong, as a sentence.
    param (Optional[str]): The field that is wrong: ``messages[0].content``.
    code (Optional[str]): A word for programs.
    headers (Optional[Dict[str, str]]): Of the response.
    """

    def __init__(
        self,
        status: int,
        message: str,
        param: Optional[str] = None,
        code: Optional[str] = None,
        headers: Optional[Dict[str, str]] = None,
    ):
        super().__init__(status, message, headers)
        self.param, self.code = param, code


def conversation_in(body: Dict[str, Any], limits: Limits) -> Message:
    """Read the conversation of a chat completion. Neighbouring messages of one side are joined, as
    in training data.

    RAISES (Refusal): If it is malformed or too large.
    """
    said: List[Tuple[int, str]] = []
    for number, message in enumerate(_list_in(body, "messages", limits)):
        name = f"messages[{number}]"
        if not isinstance(message, dict):
            raise _wrong(name, message, "an object")
        role, content = message.get("role"), message.get("content")
        if content is None and role == "user":  # Another side may have called a tool instead.
            raise _wrong(f"{name}.content", None, "a string, or a list of parts")
        text = _text_in(content, f"{name}.content")
        if isinstance(role, str) and role in ROLES:
            said.append((ROLES[role], text))
        elif role not in IGNORED:
            raise _wrong(f"{name}.role", role, f"one of {', '.join((*ROLES, *IGNORED))}")
    _check_size([text for _, text in said], "messages", limits)
    sides = groupby(said, itemgetter(0))
    turns = [(role, "\n".join(text for _, text in side)) for role, side in sides]
    if not turns or turns[-1][0] == SELF:
        raise Refusal(400, "The last message must be the user's.", "messages")
    return Message(text=turns[-1][1], context=turns[:-1], agent="user")


def number_in(body: Dict[str, Any], name: str, default: int, most: float = math.inf) -> int:
    """Read a whole number.

    RAISES (Refusal): If it is something else, less than 1 or greater than ``most``.
    """
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        limit = "1 or more" if most == math.inf else f"from 1 to {most}"
        raise _wrong(name, value, f"a whole number {limit}")
    return value


def flag_in(body: Dict[str, Any], name: str) -> bool:
    """Read true or false; false for null.

    RAISES (Refusal): If it is something else.
    """
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise _wrong(name, value, "true or false")
    return bool(value)


def texts_in(body: Dict[str, Any], name: str, limits: Limits) -> List[str]:
    """Read a text, or a list of texts; each may be an object with a `text`.

    RAISES (Refusal): If it is malformed or too large.
    """
    if isinstance(body.get(name), str):
        body = {name: [body[name]]}
    texts = []
    for number, value in enumerate(_list_in(body, name, limits)):
        value = value.get("text") if isinstance(value, dict) else value
        if not isinstance(value, str):
            raise _wrong(f"{name}[{number}]", value, "a string")
        texts.append(value)
    _check_size(texts, name, limits)
    return texts


def _list_in(body: Dict[str, Any], name: str, limits: Limits) -> List[Any]:
    value = body.get(name)
    if not isinstance(value, list) or not value:
        raise _wrong(name, value, "a list of one or more")
    if len(value) > limits.max_messages:
        text = f"'{name}' has {len(value):,} parts, and this server takes {limits.max_messages:,}."
        raise Refusal(413, text, name)
    return value


def _text_in(content: Any, name: str) -> str:
    """The text of a message's content, which may come in parts; "" for null."""
    if isinstance(content, list):
        for number, part in enumerate(content):
            if not isinstance(part, dict) or not isinstance(part.get("text"), str):
                raise _wrong(f"{name}[{number}]", part, 'a part {"type": "text", "text": "..."}')
        return "".join(part["text"] for part in content)
    if content is not None and not isinstance(content, str):
        raise _wrong(name, content, "a string, or a list of parts")
    return content or ""


def _check_size(texts: List[str], name: str, limits: Limits) -> None:
    n_characters = sum(map(len, texts))
    if n_characters > limits.max_characters:
        most = f"and this server takes {limits.max_characters:,}"
        raise Refusal(413, f"'{name}' has {n_characters:,} characters, {most}.", name)


def _wrong(name: str, value: Any, wanted: str) -> Refusal:
    found = "missing" if value is None else f"{kind(value)} ({short(value)})"
    return Refusal(400, f"'{name}' is {found}, expected {wanted}.", name)
