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


def of_split(
    rows: Iterable[Row], split: str, value_of: Callable[[Row], Any], path: object, at: Bookmark
) -> Iterator[Row]:
    """The rows of one split.

    split (str): "train", "dev" or "test".
    value_of (Callable): Gives what a row has in the column.
    path (object): The file.
    at (Bookmark): Lies where reading begins; takes rows without the column.
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
        if value.strip().lower() in NAMES[split]:
            is_empty = False
            yield row
        elif len(seen) < 8:
            seen[value] = None
    if is_empty and seen:
        raise DataError(path, f"no row is of the split '{split}' ({', '.join(map(short, seen))})")
