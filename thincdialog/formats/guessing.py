"""Guess the format of a file from its name and first lines, or by trying the readers."""

import re
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Dict, List, Optional

from ..errors import DataError, DialogError
from .arrow_file import is_arrow, read_arrow
from .candidates import NUMBERED
from .context import Bookmark
from .formats import FORMATS
from .json_layout import read_layout_file
from .layout_file import CorpusLayout, read_layout, shipped_layouts
from .tables import read_table
from .text_file import check_readable, is_json_lines, is_pipe, json_object, read_lines, suffix_of
from .value_file import read_value
from .wording import kind, short

N_LINES = 200
NAME_IT = f"name the format with --from ({', '.join(FORMATS)}, or a layout)"
WRITE_LAYOUT = "write a layout for thincdialog.JSONLayout.v1 (docs/load-your-data.md)"
# Suffixes of files that hold JSON or YAML.
VALUES = (".json", ".jsonl", ".ndjson", ".yml", ".yaml")
# Largest file in bytes that is tried with all layouts, because some are read as a whole.
MAX_TRIED = 1 << 26
PARLAI = re.compile(r"(.*\t)?(text|labels|id|label_candidates|episode_done|reward):")
# Regular expressions of first lines of files that cannot be read here, with advice for each.
HINTS = {
    r"^.* \+\+\+\$\+\+\+ ": "Cornell's raw movie lines: get ConvoKit's 'movie-corpus', which holds "
    "the same data, and read its utterances.jsonl with the layout convokit of "
    "thincdialog.JSONLayout.v1",
    r"^__\w+?__\S+\s": "fastText with another prefix: replace the prefix with __label__, and use "
    "the layout fasttext",
    r'"qas"\s*:': "SQuAD, whose answers are parts of a text. No agent can mark these. To choose "
    'among whole answers, write lines such as {"question": "...", "answer": "..."}, and use the '
    "layout prompt-completion",
}


def format_by_name(path: str) -> Optional[str]:
    """Return the format of a file, csv or tsv, if the suffix determines it; otherwise None."""
    suffix = suffix_of(path)
    return suffix[1:] if suffix in (".csv", ".tsv") else None


def guess_format(
    path: str, encoding: Optional[str] = None, is_labelled: bool = False, text_field: str = "text"
) -> str:
    """Guess the format of a file: a name in ``FORMATS``, or of a bundled layout.

    path (str): A plain file.
    encoding (Optional[str]): Of the file, see ``Bookmark``.
    is_labelled (bool): Whether a table has columns for a text and a label, whatever their names.
    text_field (str): Field of the text in JSON lines with labels.
    RAISES (DataError): If the format cannot be guessed, or the file cannot be read.
    """
    known = format_by_name(path)
    if known is not None and (is_labelled or is_pipe(path)):
        return known
    if is_pipe(path):
        raise DataError(path, f"is not a plain file, so its format cannot be guessed: {NAME_IT}")
    check_readable(path, or_folder=True)
    if known is not None:
        at = Bookmark(encoding=encoding)
        with suppress(DataError):  # Reading the file later raises it again.
            next(read_table(path, at), None)
        are_there = {"text", "label"} <= {*(at.columns or ())}
        return known if are_there else readable_format(path, encoding) or known
    lines = [] if is_arrow(path) else first_lines(path, encoding)
    found = _format_of_text(path, lines, text_field) or readable_format(path, encoding)
    if found is not None:
        return found
    if is_arrow(path):
        names = ", ".join(map(short, [*next(read_arrow(path), {})][:8]))
        if not names:
            raise DataError(path, "holds no examples")
        text = f"has the columns {names}, from which no layout can be guessed: name one, such as "
        raise DataError(path, f"{text}messages (for texts with labels: thincdialog.Dataset.v1)")
    if what := about(path, encoding):
        raise DataError(path, f"looks like {what}")
    first = next(iter(first_lines(path, encoding)), "")
    text = f"its format cannot be guessed from its beginning, {short(first)}: {NAME_IT}"
    raise DataError(path, f"{text}; see docs/load-your-data.md", 1)


def readable_format(path: str, encoding: Optional[str] = None) -> Optional[str]:
    """Find a format that can read the first episode of a file: a name in ``FORMATS``, or of a
    bundled layout; None if there is no such format.

    path (str): A plain file, or a folder of Parquet files.
    encoding (Optional[str]): Of the file, see ``Bookmark``.
    """
    name, lines = format_by_name(path), list[str]()
    with suppress(DialogError):
        lines = [] if is_arrow(path) else first_lines(path, encoding)
    with suppress(DialogError):
        name = name or _format_of_text(path, lines)
        if name is not None and next(FORMATS[name](path, at=Bookmark(encoding=encoding)), None):
            return name
    if name == "parlai":  # The file has a mistake. A layout would read its fields as speakers.
        return name
    if Path(path).stat().st_size > MAX_TRIED:
        return None
    are_rows = is_arrow(path) or suffix_of(path) in (".csv", ".tsv", ".jsonl", ".ndjson")
    has_values = are_rows or suffix_of(path) in VALUES or "".join(lines).lstrip()[:1] in ("{", "[")
    whole = None
    if has_values and not are_rows:
        try:  # All layouts get the same value, because reading it takes long.
            whole = read_value(path, Bookmark(encoding=encoding))
        except DialogError:
            has_values = False
    for name, file in shipped_layouts().items():
        layout, at = read_layout(file), Bookmark(encoding=encoding)
        at.whole = whole
        with suppress(DialogError):
            fits = is_cut_so(path, layout, lines) if layout.is_of_lines else has_values
            if fits and next(read_layout_file(path, layout, at=at), None):
                return name
    return None


def check_guess(path: str, form: Optional[str], encoding: Optional[str], text_field: str) -> None:
    """Check that a file is not read as plain lines or rows although another format or layout fits.

    text_field (str): Field of the text. A file whose first row has this field is read as rows.
    RAISES (DataError): If another format or layout fits the file, or the file is YAML.
    """
    suffix = suffix_of(path)
    if form not in (None, "jsonl") or is_arrow(path) or not Path(path).is_file():
        return
    with suppress(DataError):
        if text_field in _first_object(path, first_lines(path, encoding)):
            return
    name = readable_format(path, encoding)
    if name in ("conversations", "parlai-conversations", "jsonl"):
        return
    if name is not None:
        lines = "" if suffix in VALUES else ", or --format text to answer its lines"
        raise DataError(path, f"looks like {name}: use --format {name}{lines}")
    if suffix in (".yml", ".yaml"):
        read_value(path, Bookmark(encoding=encoding))  # Raises an error if it is not YAML.
        raise DataError(path, f"looks like {about(path, encoding)}")


def about(path: str, encoding: Optional[str] = None) -> str:
    """Describe a file that no format and no bundled layout can read, with advice; "" if the kind
    of the file is not known.

    path (str): A plain file.
    encoding (Optional[str]): Of the file, see ``Bookmark``.
    """
    with suppress(DialogError, ValueError):
        lines = first_lines(path, encoding)
        for pattern, what in HINTS.items():
            if any(re.search(pattern, line) for line in lines):
                return what
        if lines and len({line.count("\t") for line in lines}) == 1 and "\t" in lines[0]:
            return "a table with tabs between its cells: let its name end in .tsv"
        is_yaml = suffix_of(path) in (".yml", ".yaml")
        is_json = lines[:1] and lines[0].lstrip()[:1] in ("{", "[")
        if is_yaml or (is_json and not _first_object(path, lines)):
            value = read_value(path, Bookmark(encoding=encoding), MAX_TRIED)
            if value is None and not is_yaml:
                return "JSON values that span several lines: write one per line (jq -c . FILE)"
            inner = value[0] if isinstance(value, list) and value else value
            names = ", ".join(map(short, [*inner][:8])) if isinstance(inner, dict) else ""
            what = kind(inner) + (f" with {names}" if names else "")
            what = f"a list that begins with {what}" if inner is not value else what
            form = "YAML" if is_yaml else "one JSON value, not JSON lines"
            return f"{form} ({what}): {WRITE_LAYOUT}"
    return ""


def _format_of_text(path: str, lines: List[str], text_field: str = "text") -> Optional[str]:
    """Return the format that the first lines of a file look like, or None."""
    first = lines[0] if lines else ""
    if is_json_lines(path) or first.startswith("{"):
        row = _first_object(path, lines)
        pairs = row.get("dialog")
        if _are_turns(row.get("turns")):
            return "conversations"
        if isinstance(pairs, list) and (not pairs or any(map(_are_turns, pairs))):
            return "parlai-conversations"
        return "jsonl" if text_field in row else None
    elif NUMBERED.match(first):
        return "babi" if _has_support(lines) else "fbdialog"
    elif PARLAI.match(first):
        return "parlai"
    return None


def _are_turns(found: Any) -> bool:
    return isinstance(found, list) and (
        not found or any(isinstance(turn, dict) and "text" in turn for turn in found)
    )


def _first_object(path: str, lines: List[str]) -> Dict[str, Any]:
    """Return the object in the first line of JSON lines; an empty dict for other files."""
    try:
        return json_object(path, 1, lines[0]) if lines else {}
    except DataError:
        return {}


def first_lines(path: str, encoding: Optional[str] = None) -> List[str]:
    """Read the first lines of a file, without those that are blank.

    RAISES (DataError): If the file cannot be read, or is not text.
    """
    lines = islice(read_lines(path, Bookmark(encoding=encoding)), N_LINES)
    return [line for _, line in lines if line.strip()]


def is_cut_so(path: str, layout: CorpusLayout, lines: List[str]) -> bool:
    """Return whether the first lines of a file look as if they were written for a layout of text.
    It is not enough that the layout can read them, because most of these layouts can read any
    line."""
    if suffix_of(path) in VALUES or not lines or lines[0].lstrip().startswith("{"):
        return False
    if layout.separator:
        # In a table, all lines have the same number of parts.
        n_parts = {len(line.split(layout.separator)) for line in lines}
        return max(n_parts) > 2 and (len(n_parts) > 1 or bool(layout.group))
    fits = re.compile(layout.pattern or r"(?:.*\s)?(?:O|[BI]-\S+)\s*$").match
    n_fitting = sum(bool(fits(line)) for line in lines)
    return 3 * n_fitting >= len(lines) and (layout.blocks or bool(fits(lines[0])))


def _has_support(lines: List[str]) -> bool:
    """Return whether third columns hold numbers of earlier lines."""
    rows = [line.split("\t") for line in lines]
    thirds = [(row[0].partition(" ")[0], row[2].split()) for row in rows if len(row) == 3]
    are_numbers = all(number.isdecimal() and words for number, words in thirds) and all(
        word.isdecimal() and 0 < int(word[:18]) < int(number[:18])
        for number, words in thirds
        for word in words
    )
    return bool(thirds) and max(map(len, rows)) == 3 and are_numbers
