"""Finds the configs that come along with the package."""

import difflib
import re
import shlex
from pathlib import Path
from typing import Dict, List

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

    name (str): Its name, with or without ".cfg".
    RAISES (DialogError): If there is none of that name.
    """
    known = shipped_configs()
    name = name.removesuffix(".cfg")
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean '{close[0]}'? There" if close else "there"
    raise DialogError(f"there is no shipped config '{name}' - {hint} are: {', '.join(known)}")


def shipped_text(name: str, path: str) -> str:
    """The text of a config that comes along, as it stands at another path.

    name (str): As for ``find_shipped``.
    path (str): Where it will lie, for the command in its first lines.
    RAISES (DialogError): If there is none of that name.
    """
    file = find_shipped(name)
    text = file.read_text(encoding="utf8")
    places = {f"{file.stem}.py": str(code_beside(file, path)), file.name: path}
    return re.sub(
        r" configs/(\S+)",
        lambda found: f" {shlex.quote(places[found[1]])}" if found[1] in places else found[0],
        text,
    )


def code_beside(file: Path, path: str) -> Path:
    """Where the code that comes along with a config lies, for a config at another path.

    file (Path): The config that comes along, beside which its code has the same name.
    path (str): Of the other one.
    """
    return Path(path).with_name(f"{file.stem}.py")


def command_in(text: str) -> List[str]:
    """The words of the command that a config's first lines give, without the program's name.

    text (str): Of a config that comes along.
    """
    found = re.search(r"^# +python -m thincdialog (.*(?:(?<=\\)\n# .*)*)", text, re.MULTILINE)
    return shlex.split(found[1].replace("\\\n#", "")) if found else []
