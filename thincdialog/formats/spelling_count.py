"""Finds the most frequent of the spellings of a name, which is then the right one."""

from contextlib import suppress
from typing import Any, Callable, Iterable, Optional, Sequence

from ..errors import DataError
from .bad_data import BadData
from .bookmark import Bookmark
from .spellings import Counted, Spellings
from .text_file import is_pipe


def count_spellings(
    paths: Sequence[str],
    read: Callable[..., Iterable[Any]],
    encoding: Optional[str],
    speakers: Spellings,
    classes: Optional[Spellings] = None,
) -> None:
    """Read files once more than is needed, so that of two spellings the rarer one is left out.

    paths (Sequence[str]): The files. A pipe can be read only once, and is not counted.
    read (Callable): Reads a file at a bookmark `at`: its episodes.
    encoding (Optional[str]): Of the files, see ``Bookmark``.
    speakers (Spellings): Takes those of speakers.
    classes (Optional[Spellings]): Takes those of labels, if they are classes.
    """
    at, labels = Bookmark(encoding=encoding), Counted("label")
    at.speakers = found = Counted("speaker")
    for number, path in enumerate(paths):
        at.open(number)
        at.bad = at.counts = BadData(path)
        if is_pipe(path):
            continue
        with suppress(DataError):  # It comes again.
            for _ in at.counted(read(path, at=at), labels if classes is not None else None):
                pass
    speakers.main = found.main
    speakers.prefer(found)
    if classes is not None:
        classes.prefer(labels)
