"""A key that distinguishes tokenizers by their vocabulary and their settings."""

import json
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Optional

from ...contract import is_users
from .tokenizer import Tokenizer


def tokenizer_key(tokenizer: Tokenizer) -> Optional[str]:
    """Return a key that is equal only for tokenizers that return the same ids: a hash of the class,
    of the settings (public attributes) and of the files that ``to_disk`` writes.

    tokenizer (Tokenizer): A tokenizer that was built or loaded.
    RETURNS (Optional[str]): The key, in hexadecimal digits. None if a setting cannot be written as
        JSON, or if a custom tokenizer has private attributes but does not define ``to_disk``.
    """
    kind = type(tokenizer)
    settings = {
        name: value
        for name, value in vars(tokenizer).items()
        if name[0] != "_" and name != "needs_texts"  # Becomes False when a tokenizer is loaded.
    }
    if (
        is_users(kind)
        and kind.to_disk is Tokenizer.to_disk
        and len(settings) < len(vars(tokenizer))
    ):
        return None
    try:
        shown = json.dumps(settings, sort_keys=True, default=_key_of_part)
    except (TypeError, ValueError):
        return None
    found = sha256(f"{kind.__module__}.{kind.__qualname__} {shown}".encode())
    with TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer.to_disk(folder)
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            content = path.read_bytes()
            found.update(f"\n{path.relative_to(folder).as_posix()} {len(content)}\n".encode())
            found.update(content)
    return found.hexdigest()


def _key_of_part(value: Any) -> str:
    """Return the key of a setting that is a tokenizer.

    RAISES (TypeError): If the setting is not a tokenizer, or has no key.
    """
    key = tokenizer_key(value) if isinstance(value, Tokenizer) else None
    if key is None:
        raise TypeError
    return key
