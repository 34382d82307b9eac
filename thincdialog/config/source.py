"""Read a config's text line by line, and record the line of every section and key.

The grammar is confection's (Python's ``configparser`` with JSON values): sections in brackets,
``key = value``, comments on separate lines, and indented lines that continue a value. Unlike
confection, the reader continues after a mistake, so that all mistakes can be shown at once, and
parent sections may be left out.
"""

import re
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Set, Tuple

from ..errors import Problem
from .values import MAX_DEPTH, KeyPath, find_value_mistake, shorten

_SECTION = re.compile(r"\[(?P<name>[^\[\]]+)\]$")
_DIVIDER = re.compile("[=:]")
_ENTRY = re.compile(r"[^\[=:][^=:]*[=:]")


@dataclass
class Entry:
    """Hold one ``key = value``.

    raw (str): The value's text, continuation lines joined by newlines.
    line (int): Line of the key, counted from 1.
    comments (List[str]): Comment lines directly above the key, with their ``#``.
    """

    raw: str
    line: int
    comments: List[str] = field(default_factory=list)


@dataclass
class Section:
    """Hold one section: its entries by key, in the file's order."""

    name: str
    line: int
    comments: List[str] = field(default_factory=list)
    entries: Dict[str, Entry] = field(default_factory=dict)


@dataclass
class Source:
    """Hold a config as it was written.

    name (str): Name of the config in messages: the path as the user gave it.
    header (List[str]): Comment lines at the top, up to the first blank line.
    unreadable (Set[Tuple[str, ...]]): Section parts and key of values with a problem.
    """

    name: str
    sections: Dict[str, Section] = field(default_factory=dict)
    header: List[str] = field(default_factory=list)
    problems: List[Problem] = field(default_factory=list)
    unreadable: Set[KeyPath] = field(default_factory=set)

    def where(self, line: int) -> str:
        return f"{self.name}:{line}"


def read_source(text: str, name: str = "config") -> Source:
    """Split a config's text into sections and entries.

    text (str): The config.
    name (str): Name of the config in messages.
    RETURNS (Source): The config; ``problems`` holds bad syntax, repeated sections and keys (the
        first one is kept), and values that JSON cannot read.
    """
    source = Source(name)
    # Entries before the first section go into a section that is discarded.
    section = Section("", 0)
    for number, content, comments in _read_statements(text, source):
        wrong: Optional[Tuple[str, str]] = None
        shown = f"'{shorten(content)}'"
        if content.startswith("["):
            match = _SECTION.match(content)
            section = Section(match["name"].strip() if match else "", number, comments)
            parts = section.name.split(".")
            if len(parts) > MAX_DEPTH:
                wrong = f"{shown} is nested more than {MAX_DEPTH} deep", "use fewer parts"
            elif not all(part.strip() for part in parts):
                hint = "write [section] or [section.part], alone on its line"
                wrong = f"{shown} is not a section name", hint
            elif (first := source.sections.setdefault(section.name, section)) is not section:
                hint = f"the first one is at {source.where(first.line)}: merge the two"
                wrong = f"section [{section.name}] is repeated", hint
        elif not _ENTRY.match(content):
            hint = "a value that goes over several lines needs its later lines indented"
            wrong = f"{shown} is neither a [section] nor 'key = value'", hint
        else:
            key, raw = (part.strip() for part in _DIVIDER.split(content, maxsplit=1))
            entry = Entry(raw, number, comments)
            kept = section.entries.setdefault(key, entry)
            if not section.line:
                wrong = f"'{key}' comes before the first [section]", "move it into one"
            elif kept is not entry:
                hint = f"the first one is at {source.where(kept.line)}: keep one"
                wrong = f"[{section.name}] '{key}' is repeated", hint
            elif mistake := find_value_mistake(raw):
                source.unreadable.add((*section.name.split("."), key))
                wrong = f"[{section.name}] '{key}' {mistake[0]}", mistake[1]
        if wrong:
            source.problems.append(Problem(source.where(number), *wrong))
    return source


def _read_statements(text: str, source: Source) -> List[Tuple[int, str, List[str]]]:
    """Return line, text and comments above of each section and entry; an entry's text includes the
    later lines of its value. The comments at the top become the source's header."""
    found: List[Tuple[int, List[str], List[str]]] = []
    indent, comments, is_entry = 0, [], False
    for number, line in enumerate(text.split("\n"), start=1):
        content, own_indent = line.strip(), len(line) - len(line.lstrip())
        if content.startswith(("#", ";")):
            comments.append(content)
        elif not content and not found and not source.header:
            source.header, comments = comments, []
        elif is_entry and (not content or own_indent > indent):
            found[-1][1].append(content)
        elif content:
            found.append((number, [content], comments))
            indent, comments, is_entry = own_indent, [], bool(_ENTRY.match(content))
    return [(number, "\n".join(lines), comments) for number, lines, comments in found]
