"""JSON objects in a saved model's folder, with errors that name the file."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional

from ..errors import ModelError


def as_json(value: Mapping[str, Any], indent: Optional[int] = None) -> str:
    """A JSON object as text that has a UTF-8 form; non-ASCII text stays readable."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode("utf8")
    except UnicodeEncodeError:  # Lone surrogates (from broken input) have none; escapes do.
        return json.dumps(value, indent=indent)
    return text


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object; non-ASCII text stays readable."""
    path.write_text(as_json(value, indent=1) + "\n", encoding="utf8")


def read_json(path: Path, remedy: str = "Save the model again.") -> Dict[str, Any]:
    """Read a JSON object.

    remedy (str): What to do if it is damaged, as a sentence for the user.
    RAISES (ModelError): If the file is missing or damaged.
    """
    try:
        value = json.loads(path.read_text(encoding="utf8"))
    except OSError as error:
        raise ModelError(f"{path}  cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise ModelError(f"{path}  is damaged: not JSON. {remedy}") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path}  is damaged: not a JSON object. {remedy}")
    return value


def read_state(folder: Path, set_state: Callable[[Dict[str, Any]], None]) -> None:
    """Give an agent back the state that stands in its ``agent.json``.

    set_state (Callable): The agent's own; it refuses what is no state of its kind.
    RAISES (ModelError): If the file is missing, damaged, or of another agent.
    """
    path = folder / "agent.json"
    try:
        set_state(read_json(path))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ModelError(f"{path}  is not this agent's state ({error!r}).") from None
