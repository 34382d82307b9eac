"""Finds the configs that come along with the package."""

import difflib
from pathlib import Path
from typing import Dict

from ..errors import DialogError

_PACKAGE = Path(__file__).parent.parent
# In a wheel they lie inside the package, in a checkout beside it.
_FOLDERS = (_PACKAGE / "configs", _PACKAGE.parent / "configs")


def shipped_configs() -> Dict[str, Path]:
    """Name to file of every config that comes along."""
    folder = next((folder for folder in _FOLDERS if folder.is_dir()), None)
    return {path.stem: path for path in sorted(folder.glob("*.cfg"))} if folder else {}


def find_shipped(name: str) -> Path:
    """The file of a config that comes along.

    RAISES (DialogError): If there is none of that name.
    """
    known = shipped_configs()
    name = name[: -len(".cfg")] if name.endswith(".cfg") else name
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(known)}"
    raise DialogError(f"no config '{name}' comes along - {hint}")
