"""Writes configs: sections in their usual order, children under their parent."""

import re
from typing import Any, Dict, List, Mapping, Optional

from confection import Config

from .schemas import SECTION_ORDER
from .source import Source
from .values import dump_value

_KEY = re.compile(r"@?\w[\w-]*$")


def write_config(config: Mapping[str, Any], source: Optional[Source] = None) -> str:
    """The text of a config. Reading it gives the same config.

    config (Mapping[str, Any]): Nested sections. If it is a Config whose variables are
        filled in, its dollar signs are doubled, so that none is taken for a variable.
    source (Optional[Source]): What the user wrote: its comments are kept.
    RETURNS (str): Ends with a newline.
    """
    is_literal = isinstance(config, Config) and config.is_interpolated
    parts: List[str] = ["\n".join(source.header)] if source and source.header else []
    names = sorted(config, key=_rank)
    for name in names:
        _write_section((name,), config[name], source, is_literal, parts)
    return "\n\n".join(parts) + "\n"


def _rank(name: str) -> int:
    return SECTION_ORDER.index(name) if name in SECTION_ORDER else len(SECTION_ORDER)


def _is_section(value: Any) -> bool:
    """Whether a dict can be written as a section of its own, not as a JSON value."""
    if not isinstance(value, dict) or not value:
        return False
    return all(
        (key == "*" or _KEY.match(key)) and (not isinstance(inner, dict) or _is_section(inner))
        for key, inner in value.items()
    )


def _write_section(
    path: tuple,
    section: Dict[str, Any],
    source: Optional[Source],
    is_literal: bool,
    parts: List[str],
) -> None:
    name = ".".join(path)
    written = source.sections.get(name) if source else None
    lines = list(written.comments) if written else []
    children = {key: value for key, value in section.items() if _is_section(value)}
    # A group needs no header of its own.
    if path[-1] != "*" or len(children) < len(section):
        lines.append(f"[{name}]")
    for key, value in section.items():
        if key in children:
            continue
        entry = written.entries.get(key) if written else None
        lines.extend(entry.comments if entry else ())
        lines.append(f"{key} = {dump_value(_double_dollars(value) if is_literal else value)}")
    if lines:
        parts.append("\n".join(lines))
    for key, child in children.items():
        _write_section((*path, key), child, source, is_literal, parts)


def _double_dollars(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _double_dollars(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_double_dollars(inner) for inner in value]
    return value.replace("$", "$$") if isinstance(value, str) else value
