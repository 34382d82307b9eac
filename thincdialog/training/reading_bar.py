"""Shows how many texts were read while a vocabulary is built."""

from contextlib import contextmanager
from typing import Callable, Iterator, Optional, TextIO


@contextmanager
def reading_bar(stderr: TextIO) -> Iterator[Optional[Callable[[int], None]]]:
    """A counter on a terminal, gone when done; nothing where there is no terminal.

    stderr (TextIO): Where to show it.
    YIELDS (Optional[Callable]): To be called with the number of texts read so far.
    """
    if not stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(desc="Reading", unit=" texts", file=stderr, leave=False) as bar:

        def progress(n_texts: int) -> None:
            bar.update(n_texts - bar.n)

        yield progress
