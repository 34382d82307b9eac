"""Prepare names and values for trackers (TensorBoard, Weights & Biases, MLflow)."""

import json
import re
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

from ..files.plain_file import read_plain

# Keys that training does not measure: the position of the row, and a copy of one of the scores.
LEFT_OUT = ("step", "score", "total_steps")


def numbers(info: Mapping[str, Any]) -> Dict[str, float]:
    """Collect every number of a row: "train/..." for numbers that training measured since the last
    row, "dev/..." for scores of the evaluation. Trackers do not accept every character:
    "hits@1" becomes "hits_at_1", and any other character except letters, digits and "-./_"
    becomes "_".

    info (Mapping[str, Any]): A row that loggers receive.
    RETURNS (Dict[str, float]): Name to value, without values that are not numbers.
    """
    found = {f"train/{name}": value for name, value in info.items() if name not in LEFT_OUT}
    found.update({f"dev/{name}": value for name, value in info.get("scores", {}).items()})
    return {
        tracker_name(name): float(value)
        for name, value in found.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def tracker_name(name: str) -> str:
    """Return a metric's name in characters that every tracker accepts."""
    return re.sub(r"[^\w\-./]", "_", name.replace("@", "_at_"), flags=re.ASCII)


def settings(config: Mapping[str, Any]) -> Dict[str, str]:
    """Flatten a config: "training.max_epochs" to its value as JSON.

    config (Mapping[str, Any]): Nested sections.
    """
    return {name: json.dumps(value, default=str) for name, value in leaves(config)}


def leaves(value: Any, *path: str) -> Iterator[Tuple[str, Any]]:
    """Yield the dotted name and the value of each setting of nested sections."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from leaves(inner, *path, str(key))
    else:
        yield ".".join(path), value


# Files in a run's folder with the ids that trackers gave to the run.
ID_FILES = ("mlflow.id", "wandb.id")


def recall_id(output: Optional[str], tracker: str) -> Optional[str]:
    """Return the id that a tracker gave to the run in a folder; None if there is none."""
    path = _id_path(output, tracker)
    if path is None or not path.is_file():
        return None
    return read_plain(path).decode("utf8", "replace").strip()


def remember_id(output: Optional[str], tracker: str, run_id: str) -> None:
    """Save the id that a tracker gave to a run, so that a resumed run continues under that id."""
    path = _id_path(output, tracker)
    if path is not None:
        path.write_text(run_id + "\n", encoding="utf8")


def _id_path(output: Optional[str], tracker: str) -> Optional[Path]:
    return Path(output) / f"{tracker}.id" if output else None
