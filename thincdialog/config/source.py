"""Reads a config's text line by line and remembers where everything stands.

The grammar is confection's (Python's ``configparser`` with JSON values): sections
in brackets, ``key = value``, comments on lines of their own, deeper indented lines
continue a value. Unlike confection it goes on after a mistake, so that all of them
can be shown at once, and parent sections need not be written out.
"""

import re
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Set, Tuple

from ..errors import Problem
from .values import MAX_DEPTH, KeyPath, find_value_mistake, shorten

_SECTION = re.compile(r"\[(?P<name>[^\[\]]+)\]$")
_DIVIDER = re.compile("[=:]")
# What is wrong with a line, and what to do.
_Mistake = Optional[Tuple[str, str]]


@dataclass
class Entry:
    """One ``key = value``.

    raw (str): The value's text, continuation lines joined by newlines.
    line (int): Line of the key, counted from 1.
    comments (List[str]): Comment lines directly above it, with their ``#``.
    """

    raw: str
    line: int
    comments: List[str] = field(default_factory=list)


@dataclass
class Section:
    """One section: its entries by key, in the file's order."""

    name: str
    line: int
    comments: List[str] = field(default_factory=list)
    entries: Dict[str, Entry] = field(default_factory=dict)


@dataclass
class Source:
    """A config as it was written.

    name (str): What to call it in messages: the path as the user gave it.
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
    name (str): Its name in messages.
    RETURNS (Source): With ``problems``: bad syntax, repeated sections and keys,
        values that JSON cannot read. Of repeated ones the first is kept.
    """
    source = Source(name)
    mistakes: Dict[int, _Mistake] = {}
    # What stands before the first section goes into one of no name.
    read = [Section("", 0)]
    entry: Optional[Entry] = None
    indent, comments = 0, []
    for number, line in enumerate(text.split("\n"), start=1):
        content, own_indent = line.strip(), len(line) - len(line.lstrip())
        if content.startswith(("#", ";")):
            comments.append(content)
        elif not content and len(read) == 1 and not source.header:
            source.header, comments = comments, []
        elif entry and (not content or own_indent > indent):
            entry.raw += "\n" + content
        elif content:
            indent, entry = own_indent, None
            if content.startswith("["):
                section, mistakes[number] = _read_section(content, number, source.sections)
                section.comments = comments
                read.append(section)
            else:
                entry, mistakes[number] = _read_entry(content, number, read[-1])
                if entry:
                    entry.comments = comments
            comments = []
    for section in read[1:]:
        for key, entry in section.entries.items():
            entry.raw = entry.raw.strip()
            mistake = find_value_mistake(entry.raw)
            if mistake:
                mistakes[entry.line] = (f"[{section.name}] '{key}' {mistake[0]}", mistake[1])
                source.unreadable.add((*section.name.split("."), key))
    for number, mistake in sorted(mistakes.items()):
        if mistake:
            source.problems.append(Problem(source.where(number), *mistake))
    return source


def _read_section(content: str, line: int, known: Dict[str, Section]) -> Tuple[Section, _Mistake]:
    match = _SECTION.match(content)
    section = Section(match["name"].strip() if match else "", line)
    parts = section.name.split(".")
    if len(parts) > MAX_DEPTH:
        text = f"'{shorten(content)}' is nested more than {MAX_DEPTH} deep"
        return section, (text, "use fewer parts")
    if not all(part.strip() for part in parts):
        text = f"'{shorten(content)}' is not a section name"
        return section, (text, "write [section] or [section.part], alone on its line")
    first = known.setdefault(section.name, section)
    if first is not section:
        hint = f"it stands at line {first.line} already: merge the two"
        return section, (f"section [{section.name}] is repeated", hint)
    return section, None


def _read_entry(content: str, line: int, section: Section) -> Tuple[Optional[Entry], _Mistake]:
    key, *value = (part.strip() for part in _DIVIDER.split(content, 1))
    if not key or not value:
        text = f"'{shorten(content)}' is neither a [section] nor 'key = value'"
        return None, (text, "a value that goes over several lines needs its later lines indented")
    entry = Entry(value[0], line)
    if not section.line:
        return entry, (f"'{key}' stands before any [section]", "put it into one")
    first = section.entries.setdefault(key, entry)
    if first is not entry:
        hint = f"it stands at line {first.line} already: keep one"
        return entry, (f"[{section.name}] '{key}' is repeated", hint)
    return entry, None
