"""Shows the number of texts read, for data whose size is not known in advance."""

from contextlib import contextmanager
from typing import Callable, Iterator, Optional, TextIO


@contextmanager
def reading_bar(
    stderr: TextIO, title: str = "Reading", unit: str = "texts"
) -> Iterator[Optional[Callable[[int], None]]]:
    """Show a counter on a terminal, and remove it at the end; show nothing elsewhere.

    stderr (TextIO): Where to show it.
    title (str): Name of the activity.
    unit (str): The unit that is counted.
    YIELDS (Optional[Callable]): To be called with the number of units read so far; None if there
        is no terminal.
    """
    if not stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(desc=title, unit=f" {unit}", file=stderr, leave=False) as bar:

        def progress(n_read: int) -> None:
            bar.update(n_read - bar.n)

        yield progress
