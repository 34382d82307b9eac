"""Reads a config's text line by line and remembers where everything stands.

The grammar is confection's (Python's ``configparser`` with JSON values): sections
in brackets, ``key = value``, comments on lines of their own, deeper indented lines
continue a value. Unlike confection it goes on after a mistake, so that all of them
can be shown at once, and parent sections need not be written out.
"""

import re
from dataclasses import dataclass, field
from typing import Dict, List, Set, Tuple

from ..errors import Problem
from .values import MAX_DEPTH, find_value_mistake, shorten

_SECTION = re.compile(r"\[(?P<name>[^\[\]]+)\]$")
_DIVIDER = re.compile("[=:]")


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
    unreadable: Set[Tuple[str, ...]] = field(default_factory=set)

    def where(self, line: int) -> str:
        return f"{self.name}:{line}"


def read_source(text: str, name: str = "config") -> Source:
    """Split a config's text into sections and entries.

    text (str): The config.
    name (str): Its name in messages.
    RETURNS (Source): With ``problems``: bad syntax, repeated sections and keys,
        values that JSON cannot read. Of repeated ones the first is kept.
    """
    reader = _Reader(Source(name))
    for number, line in enumerate(text.split("\n"), start=1):
        reader.take(line.rstrip(), number)
    reader.end_entry()
    return reader.source


class _Reader:
    def __init__(self, source: Source):
        self.source = source
        self.section: Section = Section("", 0)
        self.entry: Tuple[str, Entry] = ("", Entry("", 0))
        self.indent = 0
        self.comments: List[str] = []
        self.before_sections = True

    def take(self, line: str, number: int) -> None:
        content = line.strip()
        if content.startswith(("#", ";")):
            self.comments.append(content)
        elif not content:
            self._take_blank()
        elif self.entry[0] and len(line) - len(line.lstrip()) > self.indent:
            self.entry[1].raw += "\n" + content
        else:
            self.end_entry()
            self.indent = len(line) - len(line.lstrip())
            if content.startswith("["):
                self._take_section(content, number)
            else:
                self._take_entry(content, number)
            self.comments = []

    def _take_blank(self) -> None:
        if self.before_sections and not self.source.header:
            self.source.header, self.comments = self.comments, []
        elif self.entry[0]:
            self.entry[1].raw += "\n"

    def _take_section(self, content: str, number: int) -> None:
        self.before_sections = False
        match = _SECTION.match(content)
        name = match["name"].strip() if match else ""
        self.section = Section(name, number, self.comments)
        parts = name.split(".")
        if len(parts) > MAX_DEPTH:
            text = f"'{shorten(content)}' is nested more than {MAX_DEPTH} deep"
            self._add_problem(number, text, "use fewer parts")
        elif not all(part.strip() for part in parts):
            text = f"'{shorten(content)}' is not a section name"
            self._add_problem(number, text, "write [section] or [section.part], alone on its line")
        elif name in self.source.sections:
            first = self.source.sections[name].line
            hint = f"it stands at line {first} already: merge the two"
            self._add_problem(number, f"section [{name}] is repeated", hint)
        else:
            self.source.sections[name] = self.section

    def _take_entry(self, content: str, number: int) -> None:
        divider = _DIVIDER.search(content)
        key = content[: divider.start()].rstrip() if divider else ""
        if not divider or not key:
            text = f"'{shorten(content)}' is neither a [section] nor 'key = value'"
            hint = "a value that goes over several lines needs its later lines indented"
            self._add_problem(number, text, hint)
            return
        entry = Entry(content[divider.end() :].lstrip(), number, self.comments)
        if not self.section.line:
            self._add_problem(number, f"'{key}' stands before any [section]", "put it into one")
        elif key in self.section.entries:
            hint = f"it stands at line {self.section.entries[key].line} already: keep one"
            text = f"[{self.section.name}] '{key}' is repeated"
            self._add_problem(number, text, hint)
        else:
            self.section.entries[key] = entry
        self.entry = (key, entry)

    def end_entry(self) -> None:
        key, entry = self.entry
        if key:
            entry.raw = entry.raw.strip()
            mistake = find_value_mistake(entry.raw)
            if mistake and self.section.entries.get(key) is entry:
                text, hint = mistake
                self.source.unreadable.add((*self.section.name.split("."), key))
                self._add_problem(entry.line, f"[{self.section.name}] '{key}' {text}", hint)
        self.entry = ("", Entry("", 0))

    def _add_problem(self, line: int, text: str, hint: str) -> None:
        self.source.problems.append(Problem(self.source.where(line), text, hint))
