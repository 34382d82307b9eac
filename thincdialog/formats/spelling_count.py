"""Count the spellings of each name in files, to accept the most frequent spelling."""

from contextlib import suppress
from typing import Any, Callable, Iterable, Optional, Sequence

from ..errors import DataError
from .context import BadData, Bookmark
from .spellings import Counted, Spellings
from .text_file import is_pipe


def count_spellings(
    paths: Sequence[str],
    read: Callable[..., Iterable[Any]],
    encoding: Optional[str],
    speakers: Spellings,
    classes: Optional[Spellings] = None,
) -> None:
    """Read files in advance, count the spellings of each name, and accept the most frequent one.
    Data with a rarer spelling is then left out, and not the data with the later spelling.

    paths (Sequence[str]): The files. A pipe is not counted, because it can be read only once.
    read (Callable): Takes a path and a bookmark `at`, and yields the episodes of the file.
    encoding (Optional[str]): Encoding of the files, see ``Bookmark``.
    speakers (Spellings): Updated with the accepted spellings of the speakers.
    classes (Optional[Spellings]): Updated with the accepted spellings of the labels; None if the
        labels are not classes.
    """
    at, labels = Bookmark(encoding=encoding), Counted("label")
    at.speakers = found = Counted("speaker")
    for number, path in enumerate(paths):
        at.open(number)
        at.bad = at.counts = BadData(path)
        if is_pipe(path):
            continue
        with suppress(DataError):  # The actual reading of the file raises it again.
            for _ in at.counted(read(path, at=at), labels if classes is not None else None):
                pass
    speakers.main = found.main
    speakers.prefer(found)
    if classes is not None:
        classes.prefer(labels)
