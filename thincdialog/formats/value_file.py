"""Read whole YAML and JSON files. They hold only lists, mappings and plain values, so reading a
file never creates other objects."""

import json
from pathlib import Path
from typing import Any, Dict, Optional, Union

import srsly

from ..errors import DataError
from ..files.json_text import MAX_NESTED, parse_json
from .context import Bookmark
from .text_file import MAX_FILE, check_surrogates, read_text, suffix_of


def read_value(path: Union[str, Path], at: Optional[Bookmark] = None, most: int = MAX_FILE) -> Any:
    """Return the value in a JSON or YAML file; None if the file is JSON lines. The arguments are
    those of ``read_text``.

    RAISES (DataError): If the file cannot be read.
    """
    content = read_text(path, at, most)
    if suffix_of(path) in (".yml", ".yaml"):
        return parse_yaml(content, path)
    try:
        value = parse_json(content)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and content.lstrip()[:1] == "{":
            return None
        text = f"not valid JSON at column {error.colno}: {error.msg}"
        raise DataError(path, text, error.lineno) from None
    except ValueError as error:
        raise DataError(path, f"not readable as JSON: {error}") from None
    if "\\u" in content:
        check_surrogates(value, path)
    return value


def parse_yaml(text: str, path: object) -> Any:
    """Return the value of a YAML text.

    text (str): Content of a whole file.
    path (object): The file, for error messages.
    RAISES (DataError): If the text is not valid YAML, is nested too deeply, or has aliases that
        expand to far more values than the text has characters.
    """
    try:
        value = srsly.yaml_loads(text)
    except (ValueError, RecursionError) as error:
        # The message of the YAML error names another file, so only its cause is shown.
        cause = error.__context__
        mark, problem = (getattr(cause, name, None) for name in ("problem_mark", "problem"))
        what = " ".join(str(problem or error)[:300].split()).removeprefix("Invalid YAML: ")
        if mark is not None and problem:
            raise DataError(path, f"not valid YAML: {what}", mark.line + 1) from None
        raise DataError(path, f"not readable as YAML: {what}") from None
    # Without aliases, each value takes at least one character.
    if _n_values(value, {}, path) > 2 * len(text):
        raise DataError(path, "not readable as YAML: its aliases expand to far too many values")
    return value


def _n_values(value: Any, known: Dict[int, int], path: object, depth: int = 0) -> int:
    """Count a value and all values inside it. The values of an alias count each time it is used."""
    if not isinstance(value, (dict, list)):
        return 1
    if depth > MAX_NESTED:
        raise DataError(path, f"not readable as YAML: it is nested more than {MAX_NESTED} deep")
    if id(value) not in known:
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_n_values(one, known, path, depth + 1) for one in inner)
    return known[id(value)]
