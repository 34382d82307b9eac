"""Shows how much was read, of data whose size is not known before."""

from contextlib import contextmanager
from typing import Callable, Iterator, Optional, TextIO


@contextmanager
def reading_bar(
    stderr: TextIO, title: str = "Reading", unit: str = "texts"
) -> Iterator[Optional[Callable[[int], None]]]:
    """A counter on a terminal, gone when done; nothing where there is no terminal.

    stderr (TextIO): Where to show it.
    title (str): What is done.
    unit (str): What is counted.
    YIELDS (Optional[Callable]): To be called with the number of them read so far.
    """
    if not stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(desc=title, unit=f" {unit}", file=stderr, leave=False) as bar:

        def progress(n_read: int) -> None:
            bar.update(n_read - bar.n)

        yield progress
