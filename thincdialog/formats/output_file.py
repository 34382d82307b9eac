"""Write a file line by line, completely or not at all."""

import gzip
import os
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Callable, Iterable, Iterator, Union, cast

from ..errors import OutputError
from ..files.plain_file import real_path
from ..files.whole_file import is_plain, open_already, whole_file


@contextmanager
def open_output(
    path: Union[str, Path], force: bool = False, reads: Iterable[Union[str, Path]] = ()
) -> Iterator[Callable[[str], object]]:
    """Yield a function that writes one line. The file appears at the end, if there was no error.

    An existing file is unchanged until then. If the name ends in .gz, the file is compressed; the
    same lines give the same bytes. A path that is not a plain file (/dev/stdout) is written to
    directly.

    path (Union[str, Path]): The file; missing folders are created. "-" is stdout.
    force (bool): Whether an existing file may be replaced.
    reads (Iterable[Union[str, Path]]): The source files of the output, which are never replaced.
    RAISES (OutputError): If the file exists and must not be replaced, or cannot be written.
    """
    path = "/dev/stdout" if str(path) == "-" else path
    target = Path(path)
    check_output_file(path, force, reads)
    try:
        if is_plain(target):
            real_path(target).parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as place, ExitStack() as files:
            # A file that is open already, such as /dev/stdout, is continued at its position.
            number = open_already(target)
            opened = open(place if number is None else os.dup(number), "wb")
            stream: BinaryIO = files.enter_context(opened)
            if str(path).endswith(".gz"):
                # No name and no time, so that the same lines give the same bytes. Level 6 is the
                # default of gzip.
                packed = gzip.GzipFile("", "wb", 6, stream, mtime=0)
                stream = cast(BinaryIO, files.enter_context(packed))
            yield lambda line: stream.write(line.encode("utf-8") + b"\n")
    except OSError as error:
        raise OutputError(f"{path}  cannot be written: {error.strerror or error}") from None


def check_output_file(
    path: Union[str, Path], force: bool = False, reads: Iterable[Union[str, Path]] = ()
) -> None:
    """Check that a file may be written, before long work. Arguments are those of ``open_output``.

    RAISES (OutputError): If the file exists and must not be replaced.
    """
    target = Path(path)
    for source in reads:
        if target.is_file() and Path(source).is_file() and target.samefile(source):
            name = "" if str(source) == str(path) else f", as {source}"
            raise OutputError(f"{path}  is read by this command{name}. Choose another name.")
    if is_plain(target) and target.exists() and not force:
        raise OutputError(f"{path}  already exists. Choose another name, or add --force.")
