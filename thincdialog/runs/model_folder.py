"""Writes a saved model (see ``files/saved_model.py``)."""

import platform
from pathlib import Path
from typing import Any, Iterable, Mapping

from .. import __version__
from ..config import write_config
from ..errors import OutputError
from ..files.checksums import checksums
from ..files.json_file import write_json
from ..files.saved_model import CONFIG, FORMAT, META
from ..files.whole_file import writing
from ..files.whole_folder import written_whole
from ..pretrained.saved_encoder import write_encoders
from ..protocol import Agent
from ..training.experiment import Experiment, PathLike
from .model_card import CARD, card


def save(experiment: Experiment, folder: PathLike) -> None:
    """Save an agent that was trained by hand: ``load``, ``evaluate`` and the commands take it as
    they take one that ``train`` saved.

    experiment (Experiment): Whose agent has its weights.
    folder (Union[str, Path]): Of the model; an old model in it is replaced.
    RAISES (OutputError): If the folder holds something else, or cannot be written.
    """
    facts = {
        "agent": experiment.checked.interpolated["agent"]["@agents"],
        "task": ", ".join(experiment.tasks),
        "ops": experiment.ops_name,
    }
    path = Path(folder)
    if path.exists() and not (path / META).is_file():
        raise OutputError(f"{path}  is there already, and no saved model: choose another folder.")
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
    """Write a model folder, whole or not at all: written beside, then renamed.

    tasks (Iterable[Agent]): Teachers, which may add files that answering needs.
    RAISES (OutputError): If the folder cannot be written; an old one stays as it was.
    """
    with written_whole(folder) as beside:
        (beside / CONFIG).write_text(config_text, encoding="utf8")
        for part in (agent, *tasks):
            part.to_disk(beside)
        write_encoders(getattr(agent, "model", None), beside, before=folder)
        facts = {
            "format": FORMAT,
            "thincdialog": __version__,
            "python": platform.python_version(),
            **meta,
            "files": checksums(beside, sorted(p for p in beside.rglob("*") if p.is_file())),
        }
        write_json(beside / META, facts)
        (beside / CARD).write_text(card(beside), encoding="utf8", errors="backslashreplace")
