"""The sources of a store (settings, contents of files, code), and a check of whether they
changed."""

import json
import os
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from ..errors import DataError
from ..examples.split import Split
from ..files.fingerprint import files_in, fingerprint
from ..loggers.values import leaves

# Version of the store format; a store of another version is built again.
FORMAT = 4
# Nanoseconds between a file's modification time and its hash. If less time passed, the file may
# have changed later without a new modification time.
_NEW = 2_000_000_000

DAMAGED_MANIFEST = "its manifest is damaged"


def made_of(
    settings: Dict[str, Any],
    data: Split,
    code: Sequence[str],
    outside_labels: bool,
    manifest: Optional[Dict[str, Any]],
) -> Dict[str, Any]:
    """Return the sources of a store of a split, as JSON.

    settings (Dict[str, Any]): Settings of the task that affect the split.
    data (Split): The split.
    code (Sequence[str]): Files of the custom functions in the config.
    outside_labels (bool): Whether labels may be missing from their candidates.
    manifest (Optional[Dict[str, Any]]): Manifest of the existing store. Files that have not changed
        since it was built are not read again.
    """
    found = {
        "format": FORMAT,
        "settings": settings,
        "files": _unchanged_hashes(files_of(data, settings), manifest),
        "code": hashes_of(code),
        "outside_labels": outside_labels,
    }
    # Convert it to the values that are read back from a manifest.
    return dict(json.loads(json.dumps(found)))


def difference(before: Any, now: Dict[str, Any]) -> str:
    """Describe how the sources of a store differ from the current sources; "" if they are equal."""
    if not isinstance(before, dict):
        return DAMAGED_MANIFEST
    if before.get("format") != now["format"]:
        return f"its format is {before.get('format')!r}, and this version writes {now['format']}"
    known, wanted = (dict(leaves(each.get("settings", {}))) for each in (before, now))
    changed = [key for key in {**known, **wanted} if known.get(key) != wanted.get(key)]
    if changed:
        key = changed[0]
        return f"'{key}' was {known.get(key)!r}, now it is {wanted.get(key)!r}"
    for part, what in (("files", "its file"), ("code", "the code")):
        if before.get(part) != now[part]:
            others = [name for name, content in now[part] if [name, content] not in before[part]]
            return f"{what} {others[0]} has changed" if others else f"it had more {part}"
    if before.get("outside_labels") != now["outside_labels"]:
        return "labels outside the candidates are now read differently"
    return "" if before == now else "it was written by another version of thincdialog"


def files_of(data: Split, settings: Dict[str, Any]) -> List[str]:
    """Return the files that a split is read from, including all files in its folders. If a custom
    reader does not list its files, use the files that settings of the task name."""
    named = [each for _, each in leaves(settings) if isinstance(each, str) and _is_data(each)]
    paths = data.files() if data.data_files() else [*data.files(), *named]
    return [file for path in paths for file in files_in(path)]


def _is_data(name: str) -> bool:
    """Return whether a setting names a file or a folder of data. The current folder and its parents
    ("/", ".") do not count, because a text may name them by chance."""
    return os.path.exists(name) and not Path.cwd().is_relative_to(Path(name).resolve())


def facts_of(paths: Sequence[str]) -> List[List[Any]]:
    """Return facts that usually change with a file: its path, size, modification time and inode."""
    stats = ((path, os.stat(path)) for path in paths)
    return [
        [os.path.abspath(path), found.st_size, found.st_mtime_ns, found.st_ino]
        for path, found in stats
    ]


def hashes_of(paths: Sequence[str]) -> List[List[str]]:
    """Return the name and the checksum of each file.

    RAISES (DataError): If a path is not a regular file.
    """
    return [[Path(path).name, _hash(path)] for path in paths]


def _unchanged_hashes(paths: List[str], manifest: Optional[Dict[str, Any]]) -> List[List[str]]:
    facts = facts_of(paths)
    try:
        if manifest is not None and manifest["facts"] == facts:
            if all(each[2] < manifest["hashed"] - _NEW for each in facts):
                return list(manifest["fingerprint"]["files"])
    except (LookupError, TypeError):
        pass
    return hashes_of(paths)


def _hash(path: str) -> str:
    if not os.path.isfile(path):
        raise DataError(path, "is not a regular file, so no store can be built from it")
    return str(fingerprint(path)[1])
