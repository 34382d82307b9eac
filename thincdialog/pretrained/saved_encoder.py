"""Encoders in saved models.

encoders.json          each encoder's folder, as the config names it, and its checksum
encoders/CHECKSUM/     its files, if the model contains it
"""

import os
import shutil
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional

from thinc.api import Model

from ..errors import ModelError
from ..files.json_file import read_json, write_json
from ..files.plain_file import check_inside
from .folder import PretrainedFolder, encoder_files

FILE, FOLDER = "encoders.json", "encoders"
# Sections of a config that may name an encoder's folder.
_SECTIONS = ("paths", "tokenizer", "agent")


class SavedEncoder(NamedTuple):
    """What a saved model needs to know of an encoder; the attribute of a layer.

    given (str): Its folder, as the config names it.
    folder (PretrainedFolder): Its contents.
    is_included (bool): Whether saved models contain it.
    """

    given: str
    folder: PretrainedFolder
    is_included: bool

    def __deepcopy__(self, memo: Any) -> "SavedEncoder":
        return self


def write_encoders(model: Any, folder: Path, before: Optional[Path] = None) -> None:
    """Write which encoders a model has, and the files of those that it contains.

    model (Any): Of an agent: a Thinc model, or nothing that has an encoder.
    folder (Path): Of the saved model, or of a checkpoint.
    before (Optional[Path]): The saved model that this one replaces; the files that both have are
        linked, not written again. None for a checkpoint, which contains no encoder.
    """
    found = _encoders_of(model)
    for each in found:
        if before is not None and each.is_included:
            place = Path(FOLDER, each.folder.checksum)
            _write_files(Path(each.given), folder / place, before / place)
    if found:
        facts = [
            {
                "folder": each.given,
                "place": str(Path(each.given).absolute()),
                "checksum": each.folder.checksum,
            }
            for each in found
        ]
        write_json(folder / FILE, {"encoders": facts})


def _write_files(given: Path, folder: Path, before: Path) -> None:
    for name in encoder_files(given):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(before / name, folder / name)
        except OSError:  # It is new, or the file system has no links.
            shutil.copyfile(given / name, folder / name)


def check_encoders(model: Any, folder: Path) -> None:
    """See that a model that was built from a config has the encoders that it was saved with.

    RAISES (ModelError): If one is another.
    """
    found = _encoders_of(model)
    for each, facts in zip(found, _facts(folder) if found else ()):
        if each.folder.checksum != facts["checksum"]:
            text = f"is not the encoder that {folder} was trained with, which was in"
            raise ModelError(
                f"{each.given}  {text} {facts['place']} (its checksum began with "
                f"{facts['checksum'][:8]}, here it is {each.folder.checksum[:8]})."
            )


def encoder_places(folder: Path, config: Mapping[str, Any]) -> Dict[str, str]:
    """Where a config must look for the encoders that a saved model contains: overrides, dotted
    name to folder.

    config (Mapping[str, Any]): Of the saved model, variables as written.
    RAISES (ModelError): If the model refers to one that is not there.
    """
    places: Dict[str, str] = {}
    for facts in _facts(folder):
        own = folder / FOLDER / facts["checksum"]
        names = [
            name
            for section in _SECTIONS
            for name in _names_of(facts["folder"], config.get(section), section)
        ]
        if own.is_dir():
            try:
                check_inside(own, folder)
            except OSError as error:
                raise ModelError(f"{own}  cannot be read: {error.strerror}.") from None
            places.update(dict.fromkeys(names, str(own)))
        elif names and not Path(facts["folder"]).is_dir():
            raise ModelError(
                f"{folder}  does not contain its encoder, which was in {facts['place']} and is no "
                f"longer there. Give its folder: --{names[0]} FOLDER"
            )
    return places


def _encoders_of(model: Any) -> List[SavedEncoder]:
    """Those of a model, each once."""
    nodes = model.walk() if isinstance(model, Model) else ()
    found = (node.attrs["saved_encoder"] for node in nodes if "saved_encoder" in node.attrs)
    return list({each.given: each for each in found}.values())


def _facts(folder: Path) -> List[Dict[str, str]]:
    path = folder / FILE
    if not os.path.lexists(path):
        return []
    facts: Any = read_json(path).get("encoders")
    try:
        for each in facts:
            if not bytes.fromhex(each["checksum"]) or not each["folder"] + each["place"]:
                raise ValueError
    except (TypeError, ValueError, LookupError):
        raise ModelError(f"{path}  is damaged. Save the model again.") from None
    return list(facts)


def _names_of(value: str, part: Any, name: str) -> Iterator[str]:
    """The dotted names of a value in a section."""
    if isinstance(part, Mapping):
        for key, each in part.items():
            yield from _names_of(value, each, f"{name}.{key}")
    elif part == value:
        yield name
