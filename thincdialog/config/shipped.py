"""Find the configs that are bundled with the package."""

import re
import shlex
from pathlib import Path
from typing import Dict, List

from ..errors import DialogError, closest

_PACKAGE = Path(__file__).parent.parent
# In a wheel the configs are inside the package, in a checkout next to it.
_FOLDERS = (_PACKAGE / "configs", _PACKAGE.parent / "configs")


def shipped_configs() -> Dict[str, Path]:
    """Return the name and file of every bundled config."""
    folder = next((folder for folder in _FOLDERS if folder.is_dir()), None)
    return {path.stem: path for path in sorted(folder.glob("*.cfg"))} if folder else {}


def find_shipped(name: str) -> Path:
    """Return the file of a bundled config.

    name (str): Name of the config, with or without ".cfg".
    RAISES (DialogError): If there is no bundled config of that name.
    """
    known = shipped_configs()
    name = name.removesuffix(".cfg")
    if name in known:
        return known[name]
    close = closest(name, known)
    hint = f"did you mean '{close}'? Choose" if close else "choose"
    raise DialogError(f"there is no shipped config '{name}' - {hint} from: {', '.join(known)}")


def shipped_text(name: str, path: str) -> str:
    """Return the text of a bundled config for a copy at another path. The command in its first
    lines then names that path.

    name (str): As for ``find_shipped``.
    path (str): Path of the copy.
    RAISES (DialogError): If there is no bundled config of that name.
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
    """Return the path of the code that belongs to a copy of a bundled config.

    file (Path): The bundled config; its code is a file of the same name in the same folder.
    path (str): Path of the copy.
    """
    return Path(path).with_name(f"{file.stem}.py")


def command_in(text: str) -> List[str]:
    """Return the words of the command in a config's first lines, without the program's name.

    text (str): Text of a bundled config.
    """
    found = re.search(r"^# +python -m thincdialog (.*(?:(?<=\\)\n# .*)*)", text, re.MULTILINE)
    return shlex.split(found[1].replace("\\\n#", "")) if found else []
