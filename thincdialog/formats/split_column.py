"""Select the rows of one split from a file that names the split of each row in a column."""

from typing import Any, Callable, Dict, Iterable, Iterator, TypeVar

from ..errors import DataError
from .context import Bookmark
from .wording import short

Row = TypeVar("Row")

# Names of each split in a split column.
NAMES = {
    "train": ("train", "training"),
    "dev": ("dev", "valid", "validation", "val", "development"),
    "test": ("test", "testing"),
}
_EXPECTED = ", ".join(name for names in NAMES.values() for name in names)


def of_split(
    rows: Iterable[Row], split: str, value_of: Callable[[Row], Any], path: object, at: Bookmark
) -> Iterator[Row]:
    """Yield the rows of one split.

    split (str): "train", "dev" or "test".
    value_of (Callable): Returns a row's value in the split column; raises a ``DataError`` if the
        row has no such column.
    path (object): The file.
    at (Bookmark): Position where reading begins; collects the errors of rows that lack the column
        or name an unknown split.
    RAISES (DataError): If no row of the whole file belongs to the split, or a row cannot be read
        and must not be left out.
    """
    seen: Dict[str, None] = {}
    is_empty = at.is_at_begin
    for value, row in at.try_each(lambda row: (str(value_of(row)), row), rows):
        name = value.strip().lower()
        if name in NAMES[split]:
            is_empty = False
            yield row
        elif not any(name in names for names in NAMES.values()):
            text = f"the split {short(value)} is not known: expected {_EXPECTED}"
            at.refuse(DataError(path, text, at.end or None))
        elif len(seen) < 8:
            seen[value] = None
    if is_empty and seen:
        found = ", ".join(map(short, seen))
        raise DataError(path, f"no row belongs to the split '{split}' (found: {found})")
