"""Sizes and SHA-256 of files, to be compared when they are read again."""

import hashlib
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping

_CHUNK = 1 << 20


def checksums(folder: Path, paths: Iterable[Path]) -> Dict[str, List[Any]]:
    """Size and SHA-256 of files by their names in a folder."""
    return {
        path.relative_to(folder).as_posix(): [path.stat().st_size, _checksum(path)]
        for path in paths
    }


def find_damage(folder: Path, files: Mapping[str, Any]) -> str:
    """What is wrong with the first file that is not as it was, or "".

    files (Mapping[str, Any]): From ``checksums``.
    RAISES (ValueError, TypeError, AttributeError): If these are no checksums.
    """
    for name, (size, checksum) in files.items():
        path = folder / name
        try:
            if not path.is_file():
                return f"{name} is missing"
            if path.stat().st_size != size:
                return f"{name} has {path.stat().st_size} bytes, expected {size}"
            if _checksum(path) != checksum:
                return f"{name} has another checksum than it was written with"
        except OSError as error:
            return f"{path.name} cannot be read ({error.strerror})"
    return ""


def _checksum(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()
