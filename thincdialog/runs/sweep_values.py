"""The values that a sweep tries, and the names of its runs."""

import hashlib
import itertools
import json
import math
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Union

import numpy as np

from ..errors import ConfigError, Problem

# Values to try: a list, or a range such as "log:1e-4..1e-1".
Choices = Union[str, Sequence[Any]]
_RANGE = re.compile(r"(?P<kind>log|uniform|int):(?P<low>[^.].*?)\.\.(?P<high>.+)$")
_LONGEST_VALUE, _LONGEST_NAME = 40, 150
# Maximum number of draws per run. (If a combination was drawn before, another one is drawn.)
_TRIES = 100


class Range(NamedTuple):
    """Describe a range of values, including both bounds.

    kind (str): "uniform", "log" (uniform in the logarithm) or "int" (whole numbers).
    """

    kind: str
    low: float
    high: float

    def draw(self, rng: np.random.Generator) -> Union[int, float]:
        """Draw a value. Fractions are rounded to three digits, so that they are easy to type."""
        if self.kind == "int":
            return int(rng.integers(int(self.low), int(self.high), endpoint=True))
        if self.kind == "log":
            value = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = rng.uniform(self.low, self.high)
        return min(max(float(f"{value:.2e}"), self.low), self.high)

    def bounds(self) -> List[Any]:
        """Return the lowest and the highest value."""
        as_type = int if self.kind == "int" else float
        return [as_type(self.low), as_type(self.high)]


def read_choices(over: Mapping[str, Choices], is_random: bool) -> Dict[str, Union[Range, List]]:
    """Return the values to try for each setting.

    over (Mapping[str, Choices]): "section.key" to a list of values or a range.
    is_random (bool): Whether values are drawn; ranges are allowed only then.
    RAISES (ConfigError): If there are problems; lists all of them.
    """
    problems: List[Problem] = []
    found: Dict[str, Union[Range, List]] = {}
    if not over:
        problems.append(Problem("", "there is nothing to sweep over", "give --over key=v1,v2"))
    for name, choices in over.items():
        where = f"--over {name}"
        if not isinstance(choices, str):
            found[name] = list({_text(value): value for value in choices}.values())
            if not found[name]:
                problems.append(Problem(where, f"'{name}' has no values", "write key=v1,v2"))
            continue
        try:
            found[name] = _read_range(choices)
        except ValueError as error:
            problems.append(Problem(where, f"'{choices}' {error}", 'such as "log:1e-4..1e-1"'))
            continue
        if not is_random:
            text = f"'{choices}' is a range, but a grid needs a list of values"
            problems.append(Problem(where, text, "draw values with --random N, or list them"))
    if problems:
        raise ConfigError(problems, "the sweep")
    return found


def _read_range(text: str) -> Range:
    match = _RANGE.match(text)
    if not match:
        raise ValueError("is neither a list of values nor a range")
    try:
        found = Range(match["kind"], float(match["low"]), float(match["high"]))
    except ValueError:
        raise ValueError("has bounds that are not numbers") from None
    if not -math.inf < found.low < found.high < math.inf:
        raise ValueError("should go from a lower to a higher number")
    if found.kind == "log" and found.low <= 0:
        raise ValueError("should begin above 0: it is uniform in the logarithm")
    if found.kind == "int" and not (found.low.is_integer() and found.high.is_integer()):
        raise ValueError("should have whole numbers as bounds")
    return found


def is_range(text: str) -> bool:
    """Return whether a text is meant as a range, valid or not."""
    return re.match(r"(log|uniform|int):", text) is not None


def grid(choices: Mapping[str, List]) -> List[Dict[str, Any]]:
    """Return every combination of the values; the last setting changes fastest."""
    return [dict(zip(choices, values)) for values in itertools.product(*choices.values())]


def sample(choices: Mapping[str, Union[Range, List]], n: int, seed: int) -> List[Dict[str, Any]]:
    """Draw distinct combinations at random. A larger n draws the same combinations first.

    n (int): Number of combinations; fewer are returned if there are not enough.
    seed (int): Seed of the draws.
    """
    found: Dict[str, Dict[str, Any]] = {}
    for number in range(n * _TRIES):
        if len(found) == n:
            break
        rng = np.random.default_rng([seed, number])
        drawn = {
            name: known.draw(rng) if isinstance(known, Range) else known[rng.integers(len(known))]
            for name, known in choices.items()
        }
        found.setdefault(json.dumps([_text(value) for value in drawn.values()]), drawn)
    return list(found.values())


def run_name(overrides: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the name of a run's folder: "learn_rate=0.01,width=64". It depends only on the names
    and values of settings, so that a sweep can find its runs again.

    overrides (Mapping[str, Any]): "section.key" to value.
    names (Sequence[str]): All settings of the sweep; their short names must differ.
    """
    parts, is_exact = [], True
    for name, value in overrides.items():
        text = _text(value)
        shown = re.sub(r"[^\w.+-]+", "-", text).strip("-.") if text != "" else "empty"
        is_exact = is_exact and shown == text and len(shown) <= _LONGEST_VALUE
        called = re.sub(r"[^\w.+-]+", "", short_name(name, names))
        parts.append(f"{called}={shown[:_LONGEST_VALUE]}")
    whole = ",".join(parts)
    if is_exact and len(whole) <= _LONGEST_NAME:
        return whole
    # Two values must not share a folder because they look the same in its name.
    exact = json.dumps([[name, _text(value)] for name, value in overrides.items()])
    return f"{whole[:_LONGEST_NAME]}-{hashlib.sha1(exact.encode()).hexdigest()[:6]}"


def short_name(name: str, names: Sequence[str], taken: Sequence[str] = ()) -> str:
    """Return the shortest end of a setting's name that no other setting has.

    names (Sequence[str]): Distinct names of all settings.
    taken (Sequence[str]): Other names that the result must not equal.
    """
    parts = name.split(".")
    for length in range(1, len(parts)):
        end = parts[-length:]
        is_alone = sum(other.split(".")[-length:] == end for other in names) == 1
        if is_alone and ".".join(end) not in taken:
            return ".".join(end)
    return name


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
