"""A saved model: a folder with everything that is needed to use the model, and no code.

    config.cfg      the whole config of the run
    meta.json       format, versions, scores, the agent's registered name, checksums
    agent.json      state of the agent in addition to weights (classes, candidates)
    layout.json     the model's nodes, dimensions and parameters; checksum of the weights
    weights.npy     all parameters, as one float32 vector
    tokenizer/      the vocabulary, or other data of the tokenizer
    encoders.json   the published encoders in the model, with checksums; encoders/ has their files
    reading/        the custom layouts of the model's tasks, to read other files in the same way
    README.md       the model card, for users

Loading a model unpickles nothing, and imports nothing that the user did not name. meta.json has the
checksum of every file except itself and the card. The checksum of config.cfg is not compared when
a model is loaded, because users may change the config, for other data or another device; instead,
the config is checked like every other config. A run that is resumed compares this checksum, too.
"""

import os
import time
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, TypeVar, Union

from .. import __version__
from ..errors import DialogError, ModelError
from .fingerprint import find_damage
from .json_file import read_json
from .plain_file import open_plain

FORMAT = 1
# Names of the models in a run's folder.
BEST, LAST = "model-best", "model-last"
CONFIG, META = "config.cfg", "meta.json"
# Number of attempts to read a model that is being replaced, and the pause between them in seconds.
N_LOOKS, LOOK_SECONDS = 3, 0.1

T = TypeVar("T")


def model_folder(path: Union[str, Path]) -> Path:
    """Return the folder of a saved model: the path itself, or the best model of a run's folder."""
    folder = Path(path)
    is_run = not os.path.lexists(folder / META) and os.path.lexists(folder / BEST / META)
    return folder / BEST if is_run else folder


def read_meta(folder: Path) -> Dict[str, Any]:
    """Read ``meta.json`` of a saved model.

    RAISES (ModelError): If the folder is not a saved model of a supported format.
    """
    path = folder / META
    if not folder.is_dir():
        raise ModelError(f"{folder}  is not a folder. Give the folder of a saved model, "
                         "such as output/quickstart/model-best.")  # fmt: skip
    if not os.path.lexists(path):  # Reading the file finds any other problem.
        inside = next((name for name in (BEST, LAST) if (folder / name).is_dir()), "")
        hint = f" Did you mean {folder / inside}?" if inside else ""
        raise ModelError(f"{folder}  is not a saved model: it has no meta.json.{hint}")
    meta = read_json(path)
    found = meta.get("format")
    if found != FORMAT:
        is_newer = isinstance(found, int) and found > FORMAT
        hint = f" Install thincdialog {meta.get('thincdialog')} or newer." if is_newer else ""
        raise ModelError(
            f"{path}  has format {found!r}; this version of thincdialog "
            f"({__version__}) reads format {FORMAT}.{hint}"
        )
    return meta


def read_checked_meta(folder: Path) -> Dict[str, Any]:
    """Read ``meta.json`` of a saved model, and check that all other files except the config are
    unchanged.

    RAISES (ModelError): If a file is missing or has changed, or the config is not a plain file.
    """
    meta = read_meta(folder)
    reason = find_changes(folder, meta, but=CONFIG)
    if reason:
        raise ModelError(f"{folder}  is damaged: {reason}. Save the model again.")
    try:
        open_plain(folder / CONFIG).close()
    except FileNotFoundError:
        text = f"{folder / CONFIG}  is missing: the saved model is incomplete."
        raise ModelError(text) from None
    except OSError as error:
        raise ModelError(f"{folder / CONFIG}  cannot be read: {error.strerror}.") from None
    return meta


def find_changes(folder: Path, meta: Mapping[str, Any], but: str = "") -> str:
    """Describe the damage of the first file that has changed since the model was saved; return ""
    if all files are unchanged.

    meta (Mapping[str, Any]): Content of ``meta.json``, from ``read_meta``.
    but (str): Name of a file that may have changed.
    """
    try:
        files = {name: facts for name, facts in meta.get("files", {}).items() if name != but}
        return find_damage(folder, files)
    except (ValueError, TypeError, AttributeError):
        return f"{META} has no checksums where they should be"


def read_consistently(path: Union[str, Path], read: Callable[[], T]) -> T:
    """Read a model's folder consistently, even if another process, such as a training run, replaces
    the model at the same time: all files are of one model.

    path (Union[str, Path]): Folder of the model, or of a run whose best model is read.
    read (Callable): Reads the model; called again if the model was replaced.
    RETURNS (T): Result of ``read``.
    RAISES (ModelError): As ``read``.
    """
    for _ in range(N_LOOKS - 1):
        before = which_model(Path(path))
        try:
            found = read()
        except (DialogError, LookupError, OSError):
            # While a model is replaced, its folder may be missing. Any other error is raised.
            if any(before) and before == which_model(Path(path)):
                raise
        else:
            if before == which_model(Path(path)):
                return found
        time.sleep(LOOK_SECONDS)
    return read()


def which_model(path: Path) -> Tuple[Optional[Tuple[int, ...]], ...]:
    """Return an identity of the model's folders, which changes when the model is replaced.

    path (Path): Folder of the model, or of a run.
    """
    return tuple(_identity(folder) for folder in (path, path / BEST))


def _identity(folder: Path) -> Optional[Tuple[int, ...]]:
    try:
        (folder / META).stat()
        # Include all files, because a copy over a network replaces them one after the other.
        files = [path.stat() for path in sorted(folder.rglob("[!.]*"))]
    except OSError:
        return None
    return tuple(fact for file in files for fact in (file.st_dev, file.st_ino, file.st_ctime_ns))
