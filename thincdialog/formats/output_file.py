"""Writes a file whole or not at all, line by line."""

import gzip
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Callable, Iterable, Iterator, Union, cast

from ..errors import OutputError
from ..files.whole_file import whole_file


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
    is_plain = target.is_file() or not target.exists()
    for source in reads:
        if target.is_file() and Path(source).is_file() and target.samefile(source):
            name = "" if str(source) == str(path) else f", as {source}"
            raise OutputError(f"{path}  is read by this command{name}. Choose another name.")
    if is_plain and target.exists() and not force:
        raise OutputError(f"{path}  is there already. Choose another name, or add --force.")
    try:
        if is_plain:
            target.resolve().parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as place, ExitStack() as files:
            stream: BinaryIO = files.enter_context(open(place, "wb"))
            if str(path).endswith(".gz"):
                # Neither name nor time: the same lines give the same bytes. Level 6 is gzip's own.
                packed = gzip.GzipFile("", "wb", 6, stream, mtime=0)
                stream = cast(BinaryIO, files.enter_context(packed))
            yield lambda line: stream.write(line.encode("utf-8") + b"\n")
    except OSError as error:
        raise OutputError(f"{path}  cannot be written: {error.strerror or error}") from None
