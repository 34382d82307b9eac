"""Write and check the encoders of saved models.

encoders.json          the folder of each encoder, as the config names it, and a checksum
encoders/CHECKSUM/     the files of an encoder, if the model contains it
"""

import os
import shutil
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional

from thinc.api import Model

from ..errors import ModelError
from ..files.json_file import read_json, write_json
from ..files.plain_file import check_inside
from .folder import PretrainedFolder
from .weights import reading

FILE, FOLDER = "encoders.json", "encoders"


class SavedEncoder(NamedTuple):
    """Describe an encoder for saved models. Layers keep it as an attribute.

    given (str): Folder of the encoder, as the config names it.
    folder (PretrainedFolder): The contents of that folder.
    is_included (bool): Whether saved models contain the encoder.
    """

    given: str
    folder: PretrainedFolder
    is_included: bool


def write_encoders(model: Any, folder: Path, before: Optional[Path] = None) -> None:
    """Write a list of the encoders of a model, and the files of those that the model contains.

    model (Any): Model of an agent; only a Thinc model can have encoders.
    folder (Path): Folder of the saved model, or of a checkpoint.
    before (Optional[Path]): The saved model that this one replaces. Files of encoders that both
        have are linked instead of copied. None for a checkpoint, which contains no encoder.
    """
    facts = []
    for given, encoder, is_included in _encoders_of(model):
        checksum, place = encoder.checksum, str(encoder.path.absolute())
        facts.append({"folder": given, "place": place, "checksum": checksum})
        if is_included and before is not None:
            own = Path(FOLDER, checksum)
            for name in encoder.files:
                _write_file(encoder.path / name, folder / own / name, before / own / name)
    if facts:
        write_json(folder / FILE, {"encoders": facts})


def _write_file(given: Path, path: Path, before: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(before, path)
    except OSError:  # The file is new, or the file system has no links.
        shutil.copyfile(given, path)


def check_encoders(model: Any, folder: Path) -> None:
    """Check that a model that was built from its config has the encoders that it was saved with.

    model (Any): Model of an agent; only a Thinc model can have encoders.
    folder (Path): Folder of the saved model.
    RAISES (ModelError): If an encoder differs.
    """
    for each, facts in zip(_encoders_of(model), _facts(folder)):
        if each.folder.checksum != facts["checksum"]:
            text = f"has changed, or is not the encoder that {folder} was trained with"
            raise ModelError(f"{each.given}  {text}. Give the folder of that one.")


def encoder_places(folder: Path, config: Mapping[str, Any]) -> Dict[str, str]:
    """Return the overrides with which a config finds the encoders inside a saved model, from dotted
    name to folder.

    folder (Path): Folder of the saved model.
    config (Mapping[str, Any]): Config of the saved model, before variables are interpolated.
    RAISES (ModelError): If the model refers to an encoder that is missing.
    """
    places: Dict[str, str] = {}
    for facts in _facts(folder):
        own = folder / FOLDER / facts["checksum"]
        names = list(_names_of(facts["folder"], config))
        if own.is_dir():
            with reading(own):
                check_inside(own, folder)
            places.update(dict.fromkeys(names, str(own)))
        elif names and not os.path.isdir(facts["folder"]):  # Perhaps relative to another folder.
            if not os.path.isdir(facts["place"]):
                raise ModelError(
                    f"{folder}  does not contain its encoder, which was in {facts['place']} and is "
                    f"no longer there. Give its folder: --{names[0]} FOLDER"
                )
            places.update(dict.fromkeys(names, facts["place"]))
    return places


def _encoders_of(model: Any) -> List[SavedEncoder]:
    """Return the encoders of a model, each once."""
    nodes = model.walk() if isinstance(model, Model) else ()
    found = (node.attrs["saved_encoder"] for node in nodes if "saved_encoder" in node.attrs)
    return list({each.given: each for each in found}.values())


def _facts(folder: Path) -> List[Dict[str, str]]:
    path = folder / FILE
    if not os.path.lexists(path):
        return []
    try:
        facts = list(read_json(path)["encoders"])
        for each in facts:
            "".join(each[name] for name in ("folder", "place", "checksum"))
    except (TypeError, LookupError):
        raise ModelError(f"{path}  is damaged. Save the model again.") from None
    return facts


def _names_of(value: str, part: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """Yield the dotted names of all settings of a config that have a value."""
    for name, each in part.items():
        if isinstance(each, Mapping):
            yield from _names_of(value, each, f"{before}{name}.")
        elif each == value:
            yield before + name
