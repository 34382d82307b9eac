"""Format values and names for error messages."""

from typing import Any, Sequence

from ..errors import closest


def kind(value: Any) -> str:
    """Describe the type of a JSON value in words."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")


def short(text: object, limit: int = 60) -> str:
    """Format a value for an error message: quoted, and cut in the middle if it is long."""
    text = str(text)
    return repr(text if len(text) <= limit else f"{text[: limit - 20]} ... {text[-15:]}")


def nearest(name: str, names: Sequence[str]) -> str:
    """Return ``; did you mean 'x'?`` for an unknown name, or "" if no name is similar."""
    # Quoted, because a name from data may hold a line end.
    close = closest(name, names, cutoff=0.65)
    return f"; did you mean {close!r}?" if close else ""
