"""Size and SHA-256 of a file, or of all files in a folder, to notice when data has changed."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, BinaryIO, List

from ..errors import DataError
from .plain_file import size_of

_CHUNK = 1 << 20

# Size in bytes, and checksum.
Print = List[Any]


def fingerprint(path: str) -> Print:
    """Return the size and the SHA-256 checksum of a file. For a folder, return the total size of
    all files inside it, and a checksum of their relative names, sizes and checksums. Other paths,
    such as pipes, are not read: their size is 0, and their checksum is "".

    RAISES (DataError): If a file cannot be read.
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
            return [size_of(file), checksum_of(file)]
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}") from None


def files_in(path: str) -> List[str]:
    """Return the files inside a folder, at any depth, sorted; for any other path, the path itself.
    Caches that the library ``datasets`` writes into its folders are left out, because they are not
    part of the data."""
    if not os.path.isdir(path):
        return [path]
    files = (each for each in sorted(Path(path).rglob("*")) if each.is_file())
    return [str(each) for each in files if not each.match("cache-*.arrow")]


def checksum_of(file: BinaryIO) -> str:
    """Return the SHA-256 of an open file, from its current position to its end."""
    found = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        found.update(chunk)
    return found.hexdigest()
