"""A saved model: a folder that holds everything needed to use it, and no code.

    config.cfg      the whole config of the run
    meta.json       format, versions, scores, the agent's registered name
    agent.json      what the agent learnt besides weights (classes, candidates)
    layout.json     the model's nodes, dimensions and parameters; checksum of the weights
    weights.npy     all parameters, one float32 vector
    tokenizer/      the vocabulary, or whatever the tokenizer keeps

Nothing here is unpickled, and nothing is imported that the user did not name.
"""

import os
import platform
import shutil
import uuid
from pathlib import Path
from typing import Any, Dict, Mapping

from .. import __version__
from ..agents.json_file import read_json, write_json
from ..errors import ModelError, OutputError
from ..protocol import Agent

FORMAT = 1


def save_model(agent: Agent, folder: Path, config_text: str, meta: Mapping[str, Any]) -> None:
    """Write a model folder, whole or not at all: written beside, then renamed.

    RAISES (OutputError): If the folder cannot be written; an old one stays as it was.
    """
    beside = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}")
    try:
        beside.mkdir(parents=True)
        (beside / "config.cfg").write_text(config_text, encoding="utf8")
        agent.to_disk(beside)
        facts = {
            "format": FORMAT,
            "thincdialog": __version__,
            "python": platform.python_version(),
            **meta,
        }
        write_json(beside / "meta.json", facts)
        _sync(beside)
        _replace(beside, folder)
    except OSError as error:
        # NumPy says only how much it could write.
        reason = error.strerror or f"the disk may be full ({error})"
        raise OutputError(
            f"{folder}  could not be written: {reason}. Free some space or "
            "choose another folder with --output; what was saved before is untouched."
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _sync(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _replace(new: Path, folder: Path) -> None:
    """Put a folder in the place of another; at no moment are both gone."""
    if not folder.exists():
        new.rename(folder)
        return
    old = folder.with_name(f".{folder.name}.old.{uuid.uuid4().hex[:8]}")
    try:
        folder.rename(old)
        new.rename(folder)
    except BaseException:  # A second Ctrl-C, too.
        if old.exists() and not folder.exists():
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def holds_something_else(folder: Path) -> bool:
    """Whether there is something in a model's place that is no saved model."""
    if not folder.exists():
        return False
    return not folder.is_dir() or (any(folder.iterdir()) and not (folder / "meta.json").is_file())


def read_meta(folder: Path) -> Dict[str, Any]:
    """``meta.json`` of a saved model.

    RAISES (ModelError): If the folder is not a saved model that we can read.
    """
    path = folder / "meta.json"
    if not folder.is_dir():
        raise ModelError(f"{folder}  is not a folder. Give the folder of a saved model, "
                         "such as output/quickstart/model-best.")  # fmt: skip
    if not path.is_file():
        inside = next(
            (name for name in ("model-best", "model-last") if (folder / name).is_dir()), ""
        )
        hint = f" Did you mean {folder / inside}?" if inside else ""
        raise ModelError(f"{folder}  is not a saved model: it has no meta.json.{hint}")
    meta = read_json(path)
    if meta.get("format") != FORMAT:
        raise ModelError(
            f"{path}  has format {meta.get('format')!r}; this version of thincdialog "
            f"({__version__}) reads format {FORMAT}."
        )
    return meta
