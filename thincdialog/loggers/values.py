"""Names and values that trackers (TensorBoard, Weights & Biases, MLflow) are given."""

import json
import re
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

from ..files.plain_file import read_plain

# Not measured in training: where the row stands, or what is among the scores as well.
LEFT_OUT = ("step", "score", "total_steps")


def numbers(info: Mapping[str, Any]) -> Dict[str, float]:
    """Every number of a row: "train/..." for what training measured since the row before,
    "dev/..." for the evaluation. Trackers do not take every letter: "hits@1" becomes
    "hits_at_1", and others that are neither letters, digits nor "-./_" become "_".

    info (Mapping[str, Any]): A row as loggers get it.
    RETURNS (Dict[str, float]): Name to value, without what was not measured.
    """
    found = {f"train/{name}": value for name, value in info.items() if name not in LEFT_OUT}
    found.update({f"dev/{name}": value for name, value in info.get("scores", {}).items()})
    return {
        tracker_name(name): float(value)
        for name, value in found.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def tracker_name(name: str) -> str:
    """A metric's name in letters that every tracker takes."""
    return re.sub(r"[^\w\-./]", "_", name.replace("@", "_at_"), flags=re.ASCII)


def settings(config: Mapping[str, Any]) -> Dict[str, str]:
    """A config as a flat list: "training.max_epochs" to its value as JSON.

    config (Mapping[str, Any]): Nested sections.
    """
    return {name: json.dumps(value, default=str) for name, value in leaves(config)}


def leaves(value: Any, *path: str) -> Iterator[Tuple[str, Any]]:
    """Dotted name and value of each setting of nested sections."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from leaves(inner, *path, str(key))
    else:
        yield ".".join(path), value


# In a run's folder: what trackers call it.
ID_FILES = ("mlflow.id", "wandb.id")


def recall_id(output: Optional[str], tracker: str) -> Optional[str]:
    """What a tracker called the run in this folder; None if it has not seen it."""
    path = _id_path(output, tracker)
    if path is None or not path.is_file():
        return None
    return read_plain(path).decode("utf8", "replace").strip()


def remember_id(output: Optional[str], tracker: str, run_id: str) -> None:
    """Keep what a tracker calls a run, so that a resumed one goes on under the same name."""
    path = _id_path(output, tracker)
    if path is not None:
        path.write_text(run_id + "\n", encoding="utf8")


def _id_path(output: Optional[str], tracker: str) -> Optional[Path]:
    return Path(output) / f"{tracker}.id" if output else None
