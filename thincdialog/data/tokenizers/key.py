"""Tells tokenizers apart by what they know and how they are set."""

import json
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Optional

from ...contract import is_users
from .tokenizer import Tokenizer


def tokenizer_key(tokenizer: Tokenizer) -> Optional[str]:
    """The same for tokenizers that give the same ids: a hash of the class, of the settings
    (public attributes) and of what ``to_disk`` saves. None if a setting is more than JSON can
    say, or if a user's tokenizer holds something else and does not save it.

    tokenizer (Tokenizer): Built already.
    """
    kind = type(tokenizer)
    settings = {
        name: value
        for name, value in vars(tokenizer).items()
        if name[0] != "_" and name != "needs_texts"  # False once it was loaded.
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
    """RAISES (TypeError): If a setting is not a tokenizer that has a key."""
    key = tokenizer_key(value) if isinstance(value, Tokenizer) else None
    if key is None:
        raise TypeError
    return key
