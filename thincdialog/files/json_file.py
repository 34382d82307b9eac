"""Read and write the JSON objects of a saved model, with errors that name the file."""

import json
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, TypeVar

from ..errors import ModelError
from .json_text import parse_json
from .plain_file import read_plain

T = TypeVar("T")


def as_json(value: Mapping[str, Any], indent: Optional[int] = None) -> str:
    """Return a JSON object as a text that UTF-8 can encode. Characters other than ASCII are not
    escaped, unless the object has lone surrogates."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode("utf8")
    except UnicodeEncodeError:  # For lone surrogates (from broken input), use escapes.
        return json.dumps(value, indent=indent)
    return text


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object to a file, with indentation (see ``as_json``)."""
    path.write_text(as_json(value, indent=1) + "\n", encoding="utf8")


def read_json(path: Path, remedy: str = "Save the model again.") -> Dict[str, Any]:
    """Read a JSON object from a file.

    remedy (str): Advice for the user if the file is damaged, as a sentence.
    RAISES (ModelError): If the file is missing or damaged.
    """
    try:
        value = parse_json(read_plain(path))
    except OSError as error:
        raise ModelError(f"{path}  cannot be read: {error.strerror}. {remedy}") from None
    except ValueError as error:
        is_json = not isinstance(error, (json.JSONDecodeError, UnicodeDecodeError))
        reason = str(error) if is_json else "not JSON"
        raise ModelError(f"{path}  is damaged: {reason}. {remedy}") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path}  is damaged: not a JSON object. {remedy}")
    return value


def read_state(folder: Path, set_state: Callable[[Dict[str, Any]], T]) -> T:
    """Restore an agent's state from its ``agent.json``.

    set_state (Callable): Method of the agent that takes the state, and raises an error if the state
        is invalid.
    RETURNS (T): Result of ``set_state``.
    RAISES (ModelError): If the file is missing, damaged, or of another agent.
    """
    path = folder / "agent.json"
    try:
        return set_state(read_json(path))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        reason = " ".join(repr(error)[:200].split())
        raise ModelError(
            f"{path}  is not this agent's state ({reason}). Save the model again."
        ) from None


def texts_in(state: Mapping[str, Any], name: str) -> List[str]:
    """Return a list of texts from an agent's state.

    RAISES (KeyError): If the state has no such name.
    RAISES (TypeError): If the value is not a list of texts.
    """
    texts = state[name]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{name} is not a list of strings")
    return texts


def numbers_in(state: Mapping[str, Any], name: str, kind: Any = (int, float)) -> List[Any]:
    """Return a list of finite numbers from an agent's state.

    kind (Any): Type of the numbers, or a tuple of types.
    RAISES (KeyError): If the state has no such name.
    RAISES (TypeError): If the value is not a list of finite numbers of these types.
    """
    numbers = state[name]
    if not isinstance(numbers, list) or not all(_is_finite(each, kind) for each in numbers):
        raise TypeError(f"{name} is not a list of numbers")
    return numbers


def number_in(state: Mapping[str, Any], name: str, least: float = 0) -> float:
    """Return a finite number from an agent's state.

    RAISES (KeyError): If the state has no such name.
    RAISES (TypeError): If the value is not a finite number of at least ``least``.
    """
    number = state[name]
    if not _is_finite(number, (int, float)) or number < least:
        raise TypeError(f"{name} is not a number, {least} or more")
    return float(number)


def whole_number_in(state: Mapping[str, Any], name: str, least: int = 0) -> int:
    """Return an integer from an agent's state.

    RAISES (KeyError): If the state has no such name.
    RAISES (TypeError): If the value is not an integer of at least ``least``, or does not fit into
        64 bits.
    """
    number = state[name]
    if not _is_finite(number, int) or not least <= number < 1 << 63:
        raise TypeError(f"{name} is not a number, {least} or more")
    return int(number)


def _is_finite(number: Any, kind: Any) -> bool:
    is_number = isinstance(number, kind) and not isinstance(number, bool)
    return is_number and abs(number) <= sys.float_info.max
