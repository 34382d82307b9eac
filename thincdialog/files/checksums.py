"""Sizes and SHA-256 checksums of files, which are compared when the files are read again."""

from pathlib import Path, PurePath
from typing import Any, Dict, Iterable, List, Mapping

from .fingerprint import checksum_of
from .plain_file import open_plain, size_of


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
            raise TypeError(f"the checksum of {name} is none")
        try:
            if _leads_out(name):
                return f"{name[:100]!r} is no file in it"
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


def _leads_out(name: str) -> bool:
    """Return whether a name cannot be the relative path of a file in a folder."""
    path = PurePath(name)
    return path.is_absolute() or ".." in path.parts or not path.name or "\0" in name
