"""A tokenizer that was built of the data in stores. It lies beside them, so that nobody builds it
again.

    STORE/tokenizer-XXXXXXXXXXXXXXXX/manifest.json    sizes and checksums
    STORE/tokenizer-XXXXXXXXXXXXXXXX/tokenizer/       what the tokenizer keeps
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from ..data import Tokenizer
from ..data.tokenizers.tokenizer import load_tokenizer
from ..errors import DataError
from ..files.checksums import checksums, find_damage
from ..files.growing_folder import MANIFEST, read_manifest
from ..files.whole_folder import written_whole


def place_of(root: Path, made_of: Any) -> Path:
    """Where the tokenizer lies that is made of something.

    root (Path): The folder of ``[loader] store``.
    made_of (Any): As JSON.
    """
    text = json.dumps(made_of, sort_keys=True)
    return root / f"tokenizer-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def find(tokenizer: Tokenizer, place: Path) -> bool:
    """Load a tokenizer, if it lies there and is not damaged: it needs no texts then.

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
    """Save a tokenizer for the next time.

    RAISES (OutputError): If it cannot be written.
    """
    with written_whole(place) as folder:
        tokenizer.to_disk(folder / "tokenizer")
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        manifest = json.dumps({"files": checksums(folder, paths)})
        (folder / MANIFEST).write_text(manifest, encoding="utf8")
