"""What a wrong name or value may have been meant to be."""

import difflib
from typing import Any, Iterable

from .annotations import choices, fits


def close_to(name: str, names: Iterable[str]) -> str:
    """A hint with the nearest valid name, or with all of them if they are few."""
    names = list(names)
    lower = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), lower, 1, cutoff=0.6)
    if close:
        return f"did you mean '{lower[close[0]]}'?"
    return f"it has: {', '.join(names)}" if 0 < len(names) <= 20 else ""


def value_hint(value: Any, annotation: Any) -> str:
    """How a value of the wrong type may have been meant; "" if there is no telling."""
    allowed = [choice for choice in choices(annotation) if isinstance(choice, str)]
    if not isinstance(value, str):
        return ""
    if allowed:
        return close_to(value, allowed) if len(allowed) > 3 else ""
    try:
        number = float(value)
        if fits(number, annotation) or number.is_integer() and fits(int(number), annotation):
            return "write it without quotes"
    except ValueError:
        pass
    if fits(True, annotation) and value.lower() in ("yes", "no", "on", "off", "true", "false"):
        return "write true or false"
    return ""
