"""Sizes and SHA-256 checksums of files and folders, to notice when they have changed."""

import hashlib
import json
import os
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Dict, Iterable, List, Mapping

from ..errors import DataError
from .plain_file import open_plain, size_of

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


def checksums(folder: Path, paths: Iterable[Path]) -> Dict[str, List[Any]]:
    """Return the size in bytes and the SHA-256 of each file, by its path relative to the folder.

    paths (Iterable[Path]): The files, all in the folder.
    """
    found = {}
    for path in paths:
        with open_plain(path, within=folder) as file:
            found[path.relative_to(folder).as_posix()] = [size_of(file), checksum_of(file)]
    return found


def find_damage(folder: Path, files: Mapping[str, Any]) -> str:
    """Describe the damage of the first file that is missing or has changed; return "" if all files
    are unchanged.

    files (Mapping[str, Any]): Sizes and checksums, as ``checksums`` returned them.
    RAISES (ValueError, TypeError, AttributeError): If ``files`` are not valid sizes and checksums.
    """
    for name, (size, checksum) in files.items():
        if not isinstance(size, int) or not isinstance(checksum, str):
            raise TypeError(f"the checksum of {name} is not valid")
        try:
            if _is_outside(name):
                return f"{name[:100]!r} is not a file in it"
            with open_plain(folder / name, within=folder) as file:
                if size_of(file) != size:
                    return f"{name} has {size_of(file)} bytes, expected {size}"
                if checksum_of(file) != checksum:
                    return f"{name} has another checksum than it was written with"
        except FileNotFoundError:
            return f"{name} is missing"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
    return ""


def _is_outside(name: str) -> bool:
    """Return whether a name cannot be the relative path of a file in a folder."""
    path = PurePath(name)
    return path.is_absolute() or ".." in path.parts or not path.name or "\0" in name
