"""Size and SHA-256 of a file, or of a folder with all files inside it."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, BinaryIO, List

from ..errors import DataError
from .plain_file import check_whole, size_of

_CHUNK = 1 << 20

# Size and checksum.
Print = List[Any]


def fingerprint(path: str) -> Print:
    """Size and checksum of all bytes of a file. A folder has the size of all files inside it, and
    a checksum of their relative names, sizes and checksums. A pipe is not read.

    RAISES (DataError): If a file cannot be read, or nearly all of a large one is a hole.
    """
    if os.path.isdir(path):
        files = files_in(path)
        inside = [[Path(each).relative_to(path).as_posix(), *fingerprint(each)] for each in files]
        checksum = hashlib.sha256(json.dumps(inside).encode()).hexdigest()
        return [sum(size for _, size, _ in inside), checksum]
    if not os.path.isfile(path):
        return [0, ""]
    try:
        with open(path, "rb") as file:
            check_whole(path, file)
            return [size_of(file), checksum_of(file)]
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}") from None


def files_in(path: str) -> List[str]:
    """The files inside a folder, at any depth, sorted; a path that is no folder as it is. The
    library datasets leaves caches of later calls in its folders, which are no part of the data."""
    if not os.path.isdir(path):
        return [path]
    files = (each for each in sorted(Path(path).rglob("*")) if each.is_file())
    return [str(each) for each in files if not each.match("cache-*.arrow")]


def checksum_of(file: BinaryIO) -> str:
    """SHA-256 of the rest of an open file."""
    found = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        found.update(chunk)
    return found.hexdigest()
