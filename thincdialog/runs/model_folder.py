"""Write a saved model (see ``files/saved_model.py``)."""

import platform
from pathlib import Path
from typing import Any, Iterable, Mapping

from .. import __version__
from ..config import write_config
from ..errors import OutputError
from ..files.fingerprint import checksums
from ..files.json_file import write_json
from ..files.saved_model import CONFIG, FORMAT, META
from ..files.whole_file import writing, written_whole
from ..pretrained.saved_encoder import write_encoders
from ..protocol import Agent
from ..training.experiment import Experiment, PathLike
from .model_card import CARD, card


def save(experiment: Experiment, folder: PathLike) -> None:
    """Save an agent that was trained with a custom loop. ``load``, ``evaluate`` and the commands
    accept it like a model from ``train``.

    experiment (Experiment): Holds the trained agent.
    folder (Union[str, Path]): Folder of the model; an old model in it is replaced.
    RAISES (OutputError): If the folder contains something else, or cannot be written.
    """
    facts = {
        "agent": experiment.checked.interpolated["agent"]["@agents"],
        "task": ", ".join(experiment.tasks),
        "ops": experiment.ops_name,
    }
    path = Path(folder)
    if path.exists() and not (path / META).is_file():
        raise OutputError(f"{path}  exists, but is not a saved model: choose another folder.")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    config, tasks = write_config(experiment.checked.config), experiment.tasks.values()
    save_model(experiment.agent, path, config, facts, tasks)


def save_model(
    agent: Agent,
    folder: Path,
    config_text: str,
    meta: Mapping[str, Any],
    tasks: Iterable[Agent] = (),
) -> None:
    """Write a model folder, completely or not at all: write it under another name, then rename it.

    agent (Agent): The trained agent.
    folder (Path): Folder of the model.
    config_text (str): Text of the config.
    meta (Mapping[str, Any]): Entries of ``meta.json``, in addition to versions and checksums.
    tasks (Iterable[Agent]): Teachers, which may add files that the model needs to answer.
    RAISES (OutputError): If the folder cannot be written; an old model is then unchanged.
    """
    with written_whole(folder) as temporary:
        (temporary / CONFIG).write_text(config_text, encoding="utf8")
        for part in (agent, *tasks):
            part.to_disk(temporary)
        write_encoders(getattr(agent, "model", None), temporary, before=folder)
        facts = {
            "format": FORMAT,
            "thincdialog": __version__,
            "python": platform.python_version(),
            **meta,
            "files": checksums(temporary, sorted(p for p in temporary.rglob("*") if p.is_file())),
        }
        write_json(temporary / META, facts)
        (temporary / CARD).write_text(card(temporary), encoding="utf8", errors="backslashreplace")
