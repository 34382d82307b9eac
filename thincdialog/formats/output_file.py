"""Writes a file whole or not at all, line by line."""

import gzip
import os
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Callable, Iterable, Iterator, Union, cast

from ..errors import OutputError
from ..files.real_path import real_path
from ..files.whole_file import is_plain, open_already, whole_file


@contextmanager
def open_output(
    path: Union[str, Path], force: bool = False, reads: Iterable[Union[str, Path]] = ()
) -> Iterator[Callable[[str], object]]:
    """A function that writes one line; the file is there when all went well.

    What was there stays as it was until then. A name that ends in .gz is compressed, the same
    bytes for the same lines. What is no plain file (/dev/stdout) is written to as it is.

    path (Union[str, Path]): The file; missing folders are made.
    force (bool): Whether a file that is there may be replaced.
    reads (Iterable[Union[str, Path]]): Files that what is written is made from: never replaced.
    RAISES (OutputError): If it is there and must not be replaced, or cannot be written.
    """
    target = Path(path)
    check_output_file(path, force, reads)
    try:
        if is_plain(target):
            real_path(target).parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as place, ExitStack() as files:
            # What is open already is written on, behind what is in it.
            number = open_already(target)
            opened = open(place if number is None else os.dup(number), "wb")
            stream: BinaryIO = files.enter_context(opened)
            if str(path).endswith(".gz"):
                # Neither name nor time: the same lines give the same bytes. Level 6 is gzip's own.
                packed = gzip.GzipFile("", "wb", 6, stream, mtime=0)
                stream = cast(BinaryIO, files.enter_context(packed))
            yield lambda line: stream.write(line.encode("utf-8") + b"\n")
    except OSError as error:
        raise OutputError(f"{path}  cannot be written: {error.strerror or error}") from None


def check_output_file(
    path: Union[str, Path], force: bool = False, reads: Iterable[Union[str, Path]] = ()
) -> None:
    """See that a file may be written; for who works long before that. Arguments as of
    ``open_output``.

    RAISES (OutputError): If it is there and must not be replaced.
    """
    target = Path(path)
    for source in reads:
        if target.is_file() and Path(source).is_file() and target.samefile(source):
            name = "" if str(source) == str(path) else f", as {source}"
            raise OutputError(f"{path}  is read by this command{name}. Choose another name.")
    if is_plain(target) and target.exists() and not force:
        raise OutputError(f"{path}  is there already. Choose another name, or add --force.")
