"""Read records of text files that are neither JSON lines nor tables, as a layout describes them."""

import re
from itertools import chain
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .context import Bookmark
from .layout_file import CorpusLayout
from .text_file import LostLine, read_lines
from .wording import short

# Matches a comment of a block with a name and a value, such as "# intent: greet".
COMMENT = re.compile(r"#\s*([\w-]+)\s*[:=]\s*(.*)")

# Line number, value, and a key that all records up to the next blank line share ("" for no key).
Keyed = Tuple[int, Any, str]


def read_text_records(path: str, layout: CorpusLayout, at: Bookmark) -> Iterator[Keyed]:
    """Yield every record with the number of its first line and its key. Blank lines are skipped.

    path (str): The file.
    layout (CorpusLayout): Layout with a `separator`, a `pattern` or `blocks`.
    at (Bookmark): Position to begin at; updated with the beginning and end of each record.
    RAISES (DataError): If the file cannot be read, or a line does not fit the layout.
    """
    if layout.separator:
        return _separated(path, layout.separator, at)
    return _at_first_lines(_blocks(path, at) if layout.blocks else _matched(path, layout, at), at)


def _separated(path: str, separator: str, at: Bookmark) -> Iterator[Keyed]:
    for number, line in read_lines(path, at):
        parts = [part.strip() for part in line.split(separator)]
        # There may be a separator after the last part, too.
        parts = parts if parts[-1] else parts[:-1]
        if parts:
            yield number, parts, ""


def _at_first_lines(records: Iterator[Keyed], at: Bookmark) -> Iterator[Keyed]:
    """Yield records that span lines, each with the bookmark at its first line. A record is known to
    be complete only after the next line was read, so the bookmark is moved back for each record."""
    for record in records:
        read = at.begin, at.end
        at.begin, at.end = record[0] - 1, record[0]
        yield record
        at.begin, at.end = read


def _matched(path: str, layout: CorpusLayout, at: Bookmark) -> Iterator[Keyed]:
    """Yield a record for each line that matches the layout's pattern. Other lines continue its
    text."""
    match = re.compile(layout.pattern).match
    waiting: Optional[Keyed] = None
    n_blank, block = 0, 0
    for number, line in read_lines(path, at, with_lost=True):
        if not line or line.isspace():
            n_blank += 1
            continue
        block = number if n_blank or not block else block
        found = None if isinstance(line, LostLine) else match(line)
        if waiting and (found or isinstance(line, LostLine)):
            yield waiting
            waiting = None
        if found:
            row = {name: part for name, part in found.groupdict().items() if part is not None}
            waiting = number, row, str(block)
        elif isinstance(line, LostLine):
            at.refuse(line.error)
        elif not waiting or not layout.is_conversation or (n_blank and layout.group == "$key"):
            at.refuse(at.error(f"does not match the layout's 'pattern': {short(line)}"))
        elif isinstance(layout.text, str) and layout.text in waiting[1]:
            waiting[1][layout.text] += "\n" * (n_blank + 1) + line
        n_blank = 0
    if waiting:
        yield waiting


def _blocks(path: str, at: Bookmark) -> Iterator[Keyed]:
    """Yield a record for each block of lines that ends in a blank line."""
    rows: List[List[str]] = []
    said: Dict[str, Any] = {}
    first, lost = 0, False
    for number, line in chain(read_lines(path, at, with_lost=True), [(0, "")]):
        if not line or line.isspace():
            if rows and not lost:
                yield first, _block(rows, said), ""
            rows, said, lost = [], {}, False
            continue
        if not rows and not said:
            first = number
        if isinstance(line, LostLine):
            at.refuse(line.error, is_same=lost)
            lost = True
        # Only lines above the first word are comments, because a word may begin with "#", too.
        elif line.startswith("#") and "\t" not in line and not rows:
            comment = COMMENT.match(line)
            said.update({comment[1]: comment[2].strip()} if comment else {})
        else:
            rows.append(line.split("\t") if "\t" in line else line.split())


def _block(rows: List[List[str]], said: Dict[str, Any]) -> Dict[str, Any]:
    # In some corpora the intent is the last line.
    if len(rows) > 1 and len(rows[-1]) == 1 < len(rows[0]):
        said["intent"] = rows.pop()[0]
    return {"rows": rows, **said}
