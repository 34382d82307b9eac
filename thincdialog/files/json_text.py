"""JSON from files: a few bytes can say values that fill the memory, or that are nested so deep
that nothing can be done with them."""

import json
from typing import Any, Dict, List, Tuple, Union

# Values, names and brackets in one text.
MAX_VALUES = 50_000_000
# The same in a line: an example, a row.
MAX_LINE_VALUES = 4_000_000
# Lists and objects within one another.
MAX_NESTED = 200


def parse_json(text: Union[str, bytes], most: int = MAX_VALUES) -> Any:
    """What a JSON text says.

    text (Union[str, bytes]): Of a file, or of a line of one; bytes are UTF-8.
    most (int): Values and brackets in it; marks in strings are counted, too.
    RAISES (ValueError): If it is no JSON (``JSONDecodeError`` tells the place), or says too much.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    n_open = text.count("[") + text.count("{")
    # A value has a mark before it, but for the first one.
    if len(text) > most and n_open + text.count(",") + text.count(":") > most:
        raise ValueError(f"it holds more than {most:,} values")
    too_deep = f"it is nested more than {MAX_NESTED} deep"
    try:
        value = _decoder.decode(text)
    except RecursionError:
        raise ValueError(too_deep) from None
    if n_open > MAX_NESTED and _is_deep(value):
        raise ValueError(too_deep)
    return value


def _object(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has {twice[:60]!r} twice: rename or delete one of them")
    return value


_decoder = json.JSONDecoder(object_pairs_hook=_object)


def _is_deep(value: Any) -> bool:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_NESTED):
        level = [
            inner
            for part in level
            for inner in (part.values() if isinstance(part, dict) else part)
            if isinstance(inner, (dict, list))
        ]
    return bool(level)
