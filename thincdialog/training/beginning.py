"""The saved model that a run starts from: ``[training] init_from``.

This is a setting of the training and not of the agent, because it only sets the initial weights,
for every agent that learns. A model saved by such a run is complete without it.
"""

from pathlib import Path
from typing import Any, Optional, Tuple

from ..config import CheckedConfig, read_sections
from ..errors import ConfigError, Problem
from ..files.saved_model import CONFIG, model_folder, read_checked_meta, read_consistently
from ..loggers.values import leaves


def initial_model_folder(checked: CheckedConfig) -> Optional[Path]:
    """Return the folder of the saved model that ``init_from`` names, or of the best model of the
    run that it names; None if it is not set.

    RAISES (ModelError): If the folder is not a complete saved model.
    RAISES (ConfigError): If the model's tokenizer differs from that of the config.
    """
    name = checked.interpolated["training"]["init_from"]
    if name is None:
        return None

    def read() -> Tuple[Path, Any]:
        folder = model_folder(name)
        read_checked_meta(folder)
        return folder, read_sections(folder / CONFIG).get("tokenizer")

    folder, saved = read_consistently(name, read)
    own = checked.interpolated.get("tokenizer")
    if saved is not None and own is not None:
        before, now = (dict(leaves(section)) for section in (saved, own))
        different = [key for key in {**before, **now} if before.get(key) != now.get(key)]
        hint = "its embeddings belong to its tokens: copy [tokenizer] from its config.cfg"
        problems = [
            Problem(
                checked.where("tokenizer", key),
                f"[tokenizer] {key} = {now.get(key)!r}, but {before.get(key)!r} in {folder}",
                hint,
            )
            for key in different
        ]
        if problems:
            raise ConfigError(problems, checked.name)
    return folder
