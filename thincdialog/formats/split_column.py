"""Rows of several splits in one file, which a column tells apart."""

from typing import Any, Callable, Dict, Iterable, Iterator, TypeVar

from ..errors import DataError
from .bookmark import Bookmark
from .wording import short

Row = TypeVar("Row")

# What columns call a split.
NAMES = {
    "train": ("train", "training"),
    "dev": ("dev", "valid", "validation", "val", "development"),
    "test": ("test", "testing"),
}
_EXPECTED = ", ".join(name for names in NAMES.values() for name in names)


def of_split(
    rows: Iterable[Row], split: str, value_of: Callable[[Row], Any], path: object, at: Bookmark
) -> Iterator[Row]:
    """The rows of one split.

    split (str): "train", "dev" or "test".
    value_of (Callable): Gives what a row has in the column.
    path (object): The file.
    at (Bookmark): Lies where reading begins; takes rows without the column, or of a split that
        is not known.
    RAISES (DataError): If the whole file has no row of the split.
    """
    seen: Dict[str, None] = {}
    is_empty = at.is_at_begin
    for row in rows:
        try:
            value = str(value_of(row))
        except DataError as error:
            at.refuse(error)
            continue
        name = value.strip().lower()
        if name in NAMES[split]:
            is_empty = False
            yield row
        elif not any(name in names for names in NAMES.values()):
            text = f"the split {short(value)} is not known: expected {_EXPECTED}"
            at.refuse(DataError(path, text, at.end[1] or None))
        elif len(seen) < 8:
            seen[value] = None
    if is_empty and seen:
        raise DataError(path, f"no row is of the split '{split}' ({', '.join(map(short, seen))})")
