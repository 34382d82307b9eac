"""Tokenizers built from the data in stores. They are saved next to the stores, so that later runs
can load them.

    STORE/tokenizer-XXXXXXXXXXXXXXXX/manifest.json    sizes and checksums
    STORE/tokenizer-XXXXXXXXXXXXXXXX/tokenizer/       the tokenizer's files
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from ..data import Tokenizer
from ..data.tokenizers.tokenizer import load_tokenizer
from ..errors import DataError
from ..files.fingerprint import checksums, find_damage
from ..files.shard_folder import MANIFEST, read_manifest
from ..files.whole_file import written_whole


def place_of(root: Path, kind: str, made_of: Any) -> Path:
    """Return the folder of something in a store, such as a tokenizer.

    root (Path): Folder that contains it.
    kind (str): First part of the folder's name.
    made_of (Any): Settings and data that it is built from, as JSON.
    """
    text = json.dumps(made_of, sort_keys=True)
    return root / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def find(tokenizer: Tokenizer, place: Path) -> bool:
    """Load a tokenizer if it was saved and is not damaged, so that it needs no texts.

    RETURNS (bool): Whether it was loaded.
    """
    try:
        manifest = read_manifest(place)
        if manifest is None or find_damage(place, manifest["files"]):
            return False
    except (DataError, LookupError, ValueError, TypeError, AttributeError):
        return False
    load_tokenizer(tokenizer, place)
    tokenizer.needs_texts = False
    return True


def keep(tokenizer: Tokenizer, place: Path) -> None:
    """Save a tokenizer for later runs.

    RAISES (OutputError): If it cannot be written.
    """
    with written_whole(place) as folder:
        tokenizer.to_disk(folder / "tokenizer")
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        manifest = json.dumps({"files": checksums(folder, paths)})
        (folder / MANIFEST).write_text(manifest, encoding="utf8")
