"""Suggestions for wrong names and values."""

import difflib
import json
import math
import re
from typing import Any, Iterable, List

from ..errors import closest
from .annotations import fits
from .values import read_number


def close_to(name: str, names: Iterable[str]) -> str:
    """Return a hint with the most similar valid name, or with all valid names if they are few."""
    names = list(names)
    if close := closest(name, names):
        return f"did you mean '{close}'?"
    return f"it has: {', '.join(names)}" if 0 < len(names) <= 20 else ""


def close_functions(name: str, names: Iterable[str], n: int = 1) -> List[str]:
    """Return the registered names most similar to a name, ignoring "thincdialog." and the
    version."""
    # If several names have the same core, keep the first.
    cores = {_core(known): known for known in reversed(list(names))}
    return [cores[core] for core in difflib.get_close_matches(_core(name), cores, n, cutoff=0.6)]


def _core(name: str) -> str:
    return re.sub(r"^thincdialog\.|\.v\d+$", "", name).lower()


def value_hint(value: Any, annotation: Any) -> str:
    """Return a hint for a value of the wrong type; "" if its intended meaning is unclear."""
    if isinstance(value, float) and value.is_integer() and fits(int(value), annotation):
        return f"write {int(value)}"
    if type(value) is int and fits(str(value), annotation):
        return f'write "{value}", in quotes (on a command line: \'"{value}"\')'
    if not isinstance(value, str):
        return ""
    if fits(True, annotation) and value.lower() in ("yes", "no", "on", "off", "true", "false"):
        return "write true or false"
    number = read_number(value)
    if number is None or not abs(number) < math.inf or not fits(number, annotation):
        return ""
    written = json.dumps(number)
    return "write it without quotes" if written == value else f"write {written}"
