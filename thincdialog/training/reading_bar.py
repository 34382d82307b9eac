"""A progress bar for texts whose number is not known in advance."""

from contextlib import contextmanager
from typing import Callable, Iterator, Optional, TextIO


@contextmanager
def reading_bar(
    stderr: TextIO, title: str = "Reading", unit: str = "texts"
) -> Iterator[Optional[Callable[[int], None]]]:
    """Show a counter in the block if the stream is a terminal, and remove it at the end.

    stderr (TextIO): Stream for the counter.
    title (str): Name of the activity.
    unit (str): Unit to count.
    YIELDS (Optional[Callable]): A function to call with the number of units so far; None if the
        stream is not a terminal.
    """
    if not stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(desc=title, unit=f" {unit}", file=stderr, leave=False) as bar:

        def progress(n_read: int) -> None:
            bar.update(n_read - bar.n)

        yield progress
