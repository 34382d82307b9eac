"""Parse JSON, and refuse values that are nested too deep to process."""

import json
from typing import Any, Dict, List, Tuple, Union

# Maximum depth of nested lists and objects.
MAX_NESTED = 200


def parse_json(text: Union[str, bytes], most: int = MAX_NESTED) -> Any:
    """Parse a JSON text.

    text (Union[str, bytes]): Text of a file or of a line; bytes are UTF-8.
    most (int): Maximum depth of nested lists and objects.
    RAISES (ValueError): If the text is not JSON (``JSONDecodeError`` has the position), is nested
        too deep, or has an object with the same name twice.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    too_deep = f"it is nested more than {most} deep"
    try:
        value = _decoder.decode(text)
    except RecursionError:
        raise ValueError(too_deep) from None
    if text.count("[") + text.count("{") > most and _is_deep(value, most):
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


def _is_deep(value: Any, most: int) -> bool:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(most):
        level = [
            inner
            for part in level
            for inner in (part.values() if isinstance(part, dict) else part)
            if isinstance(inner, (dict, list))
        ]
    return bool(level)
