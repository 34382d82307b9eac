"""Write configs, with sections in their usual order and subsections after their parent."""

import re
from typing import Any, Dict, List, Mapping, Optional, Tuple

from confection import Config

from .schemas import SECTION_ORDER
from .source import Section, Source
from .values import KeyPath, dump_value

_KEY = re.compile(r"(\*|@?\w[\w-]*)$")


def write_config(config: Mapping[str, Any], source: Optional[Source] = None) -> str:
    """Return the text of a config. Reading the text gives the same config.

    config (Mapping[str, Any]): Nested sections. If it is a Config whose variables are filled in,
        dollar signs are doubled, so that they do not begin variables.
    source (Optional[Source]): The config as the user wrote it, whose comments are kept.
    RETURNS (str): The text, which ends with a newline.
    """
    if isinstance(config, Config) and config.is_interpolated:
        config = _double_dollars(config)
    parts = ["\n".join(source.header)] if source and source.header else []
    # Unknown sections come last, in their own order.
    names = sorted(config, key=[*SECTION_ORDER, *config].index)
    rest: List[Tuple[KeyPath, Dict[str, Any]]] = [((name,), config[name]) for name in names]
    while rest:
        path, section = rest.pop(0)
        name = ".".join(path)
        written = (source.sections.get(name) if source else None) or Section(name, 0)
        children = {key: value for key, value in section.items() if _is_section(value)}
        lines = list(written.comments)
        # A group needs no section header.
        if path[-1] != "*" or len(children) < len(section):
            lines.append(f"[{name}]")
        for key, value in section.items():
            if key not in children:
                lines.extend(written.entries[key].comments if key in written.entries else ())
                lines.append(f"{key} = {dump_value(value)}")
        parts.extend(["\n".join(lines)] if lines else [])
        rest = [*(((*path, key), child) for key, child in children.items()), *rest]
    return "\n\n".join(parts) + "\n"


def _is_section(value: Any) -> bool:
    """Return whether a dict can be written as a section, instead of a JSON value."""
    if not isinstance(value, dict) or not value or not all(map(_KEY.match, value)):
        return False
    return all(_is_section(inner) for inner in value.values() if isinstance(inner, dict))


def _double_dollars(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _double_dollars(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_double_dollars(inner) for inner in value]
    return value.replace("$", "$$") if isinstance(value, str) else value
