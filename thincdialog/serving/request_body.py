"""Read the bodies of requests, and report which field is wrong."""

from itertools import groupby
from operator import itemgetter
from typing import Any, Dict, List, Optional

from ..errors import DialogError
from ..formats.wording import kind, short
from ..messages import PARTNER, SELF, Message
from .limits import Limits

# Speaker of the messages of each role; messages of other roles are ignored.
ROLES: Dict[str, Any] = {"user": PARTNER, "assistant": SELF}
ROLES.update(dict.fromkeys(("system", "developer", "tool", "function")))
# Types of errors that are not the client's mistake, by status.
TYPES = {429: "rate_limit_error", 500: "server_error", 503: "server_error"}


class Refusal(DialogError):
    """A request is refused.

    status (int): HTTP status.
    message (str): Description of the mistake, as a sentence.
    param (Optional[str]): The wrong field, such as ``messages[0].content``.
    code (Optional[str]): OpenAI's name of the error.
    headers (Optional[Dict[str, str]]): Further headers of the response.
    """

    def __init__(
        self, status: int, message: str, param: Any = None, code: Any = None, headers: Any = None
    ):
        super().__init__(message)
        self.status, self.headers = status, headers
        sort = TYPES.get(status, "invalid_request_error")
        self.answer = {"message": message, "type": sort, "param": param, "code": code}


def conversation_in(body: Dict[str, Any], limits: Limits) -> Message:
    """Read the conversation of a chat completion. Adjacent messages of the same speaker are joined,
    as in training data.

    RAISES (Refusal): If the conversation is malformed or too large.
    """
    said = []
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _wrong("messages", messages, "a list of one or more")
    for number, message in enumerate(messages):
        name = f"messages[{number}]"
        if not isinstance(message, dict):
            raise _wrong(name, message, "an object")
        role, content = message.get("role"), message.get("content")
        if role not in list(ROLES):
            raise _wrong(f"{name}.role", role, f"one of {', '.join(ROLES)}")
        # The assistant only calls a tool.
        if ROLES[role] is None or (role == "assistant" and content is None):
            continue
        said.append((ROLES[role], "".join(_texts_of(content, f"{name}.content"))))
    _check_size([text for _, text in said], "messages", limits)
    turns = [(side, "\n".join(text for _, text in of)) for side, of in groupby(said, itemgetter(0))]
    if not turns or turns[-1][0] == SELF:
        raise Refusal(400, "The last message must be the user's.", "messages")
    return Message(text=turns[-1][1], context=turns[:-1], agent="user")


def texts_in(body: Dict[str, Any], name: str, limits: Limits) -> List[str]:
    """Read a text, or a list of texts; each may be an object with a `text`.

    RAISES (Refusal): If the value is malformed or too large.
    """
    texts = _texts_of(body.get(name), name)
    _check_size(texts, name, limits)
    return texts


def option_in(body: Dict[str, Any], name: str, default: Any, most: Optional[int] = None) -> Any:
    """Read an option of the same type as its default: true or false, or a whole number of 1 or
    more. Null means the default.

    RAISES (Refusal): If the value has another type, or is greater than ``most``.
    """
    value = body.get(name)
    if value is None:
        return default
    is_flag = isinstance(default, bool)
    if type(value) is not type(default) or not (is_flag or 1 <= value <= (most or value)):
        limit = f"from 1 to {most}" if most else "1 or more"
        raise _wrong(name, value, "true or false" if is_flag else f"a whole number {limit}")
    return value


def _texts_of(value: Any, name: str) -> List[str]:
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, list) or not parts:
        raise _wrong(name, value, "a string, or a list of one or more")
    texts: List[Any] = [part.get("text") if isinstance(part, dict) else part for part in parts]
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            wanted = 'a string, or {"type": "text", "text": "..."}'
            raise _wrong(f"{name}[{number}]", parts[number], wanted)
    return texts


def _check_size(texts: List[str], name: str, limits: Limits) -> None:
    sizes = {"parts": len(texts), "characters": sum(map(len, texts))}
    for (unit, n), most in zip(sizes.items(), (limits.max_messages, limits.max_characters)):
        if n > most:
            raise Refusal(413, f"'{name}' has {n:,} {unit}, but this server allows {most:,}.", name)


def _wrong(name: str, value: Any, wanted: str) -> Refusal:
    found = "missing" if value is None else f"{kind(value)} ({short(value)})"
    return Refusal(400, f"'{name}' is {found}, expected {wanted}.", name)
