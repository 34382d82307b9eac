"""Writes a saved model (see ``files/saved_model.py``)."""

import platform
from pathlib import Path
from typing import Any, Mapping

from .. import __version__
from ..files.checksums import checksums
from ..files.json_file import write_json
from ..files.saved_model import FORMAT
from ..files.whole_folder import written_whole
from ..protocol import Agent
from .model_card import CARD, card

# Files that meta.json has checksums of.
LEARNT = ("agent.json", "layout.json")


def save_model(agent: Agent, folder: Path, config_text: str, meta: Mapping[str, Any]) -> None:
    """Write a model folder, whole or not at all: written beside, then renamed.

    RAISES (OutputError): If the folder cannot be written; an old one stays as it was.
    """
    with written_whole(folder) as beside:
        (beside / "config.cfg").write_text(config_text, encoding="utf8")
        agent.to_disk(beside)
        facts = {
            "format": FORMAT,
            "thincdialog": __version__,
            "python": platform.python_version(),
            **meta,
            "files": checksums(
                beside, [beside / name for name in LEARNT if (beside / name).is_file()]
            ),
        }
        write_json(beside / "meta.json", facts)
        (beside / CARD).write_text(card(beside), encoding="utf8", errors="backslashreplace")
