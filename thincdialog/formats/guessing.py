"""Tells the text format of a file by its name and its first lines."""

import re
from itertools import islice
from pathlib import Path
from typing import List, Optional

from ..errors import DataError
from .candidates import NUMBERED
from .formats import FORMATS
from .text_file import read_json_lines, read_lines, suffix_of
from .wording import short

N_LINES = 200
GIVE = f"give it ({', '.join(FORMATS)})"
PARLAI = re.compile(r"(.*\t)?(text|labels|id|label_candidates|episode_done|reward):")


def format_by_name(path: str) -> Optional[str]:
    """The format that a file's name alone tells, if it does: csv or tsv."""
    suffix = suffix_of(path)
    return suffix[1:] if suffix in (".csv", ".tsv") else None


def guess_format(path: str) -> str:
    """A name in ``FORMATS``.

    path (str): A plain file.
    RAISES (DataError): If it cannot be told, or the file cannot be read.
    """
    known = format_by_name(path)
    if known is not None:
        return known
    if not Path(path).is_file() and Path(path).exists() and not Path(path).is_dir():
        raise DataError(path, f"is no plain file, so its format cannot be told: {GIVE}")
    lines = [line for _, line in islice(read_lines(path), N_LINES) if line.strip()]
    first = lines[0] if lines else ""
    if suffix_of(path) in (".jsonl", ".json", ".ndjson") or first.startswith("{"):
        row = next((row for _, row in read_json_lines(path)), {})
        if "turns" in row or "dialog" in row:
            return "conversations" if "turns" in row else "parlai-conversations"
        if "text" in row:
            return "jsonl"
    elif NUMBERED.match(first):
        return "babi" if _has_support(lines) else "fbdialog"
    elif PARLAI.match(first):
        return "parlai"
    raise DataError(path, f"its format cannot be told, it begins {short(first)}: {GIVE}", 1)


def _has_support(lines: List[str]) -> bool:
    """Whether third columns hold numbers of lines that stand before."""
    thirds = []
    for line in lines:
        cells = line.split("\t")
        if len(cells) > 3:
            return False
        if len(cells) == 3:
            thirds.append((line.partition(" ")[0], cells[2].split()))
    return bool(thirds) and all(
        words
        and number.isdecimal()
        and all(word.isdecimal() and 0 < int(word[:18]) < int(number[:18]) for word in words)
        for number, words in thirds
    )
