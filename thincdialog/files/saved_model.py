"""A saved model: a folder that holds everything needed to use it, and no code.

    config.cfg      the whole config of the run
    meta.json       format, versions, scores, the agent's registered name, checksums
    agent.json      what the agent learnt besides weights (classes, candidates)
    layout.json     the model's nodes, dimensions and parameters; checksum of the weights
    weights.npy     all parameters, one float32 vector
    tokenizer/      the vocabulary, or whatever the tokenizer keeps
    README.md       the model card, for readers

Nothing here is unpickled, and nothing is imported that the user did not name. What was
learnt has checksums: agent.json and layout.json in meta.json, the weights in layout.json,
vocabularies in their own files. config.cfg has none: it is there to be changed, for other
data or another device, and is checked as every config is.
"""

from pathlib import Path
from typing import Any, Dict, Mapping, Union

from .. import __version__
from ..errors import ModelError
from .checksums import find_damage
from .json_file import read_json

FORMAT = 1
# Models that a run's folder holds.
BEST, LAST = "model-best", "model-last"


def model_folder(path: Union[str, Path]) -> Path:
    """The folder of a saved model: this one, or the best model of the run that it holds."""
    folder = Path(path)
    is_run = not (folder / "meta.json").is_file() and (folder / BEST / "meta.json").is_file()
    return folder / BEST if is_run else folder


def read_meta(folder: Path) -> Dict[str, Any]:
    """``meta.json`` of a saved model.

    RAISES (ModelError): If the folder is not a saved model that we can read.
    """
    path = folder / "meta.json"
    if not folder.is_dir():
        raise ModelError(f"{folder}  is not a folder. Give the folder of a saved model, "
                         "such as output/quickstart/model-best.")  # fmt: skip
    if not path.is_file():
        inside = next((name for name in (BEST, LAST) if (folder / name).is_dir()), "")
        hint = f" Did you mean {folder / inside}?" if inside else ""
        raise ModelError(f"{folder}  is not a saved model: it has no meta.json.{hint}")
    meta = read_json(path)
    if meta.get("format") != FORMAT:
        raise ModelError(
            f"{path}  has format {meta.get('format')!r}; this version of thincdialog "
            f"({__version__}) reads format {FORMAT}."
        )
    return meta


def check_files(folder: Path, meta: Mapping[str, Any]) -> None:
    """See that what was learnt is as it was saved. Models of before there were checksums
    have none to compare with.

    meta (Mapping[str, Any]): From ``read_meta``.
    RAISES (ModelError): If a file is missing or another one.
    """
    try:
        reason = find_damage(folder, meta.get("files", {}))
    except (ValueError, TypeError, AttributeError):
        reason = "meta.json has no checksums where they should be"
    if reason:
        raise ModelError(f"{folder}  is damaged: {reason}. Save the model again.")
