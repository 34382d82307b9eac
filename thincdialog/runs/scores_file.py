"""``scores.json`` in a run's folder: the results of the run, for tables and model cards."""

import os
from pathlib import Path
from typing import Any, Dict

from ..errors import ModelError
from ..evaluation.results import Result
from ..files.json_file import read_json, write_json
from ..files.whole_file import whole_file, writing
from ..loggers.row_file import finite, is_number

SCORES = "scores.json"
REMEDY = "Delete it to see the run without its final scores."
# Required keys, and the types of their values.
KINDS: Dict[str, Any] = {
    "score_name": str, "best_step": int, "stopped_because": str, "seconds": (int, float),
    "n_parameters": int, "scores": dict,
}  # fmt: skip


def write_scores(folder: Path, result: Result) -> None:
    """Write the results of a run. The file exists only after the run has ended.

    folder (Path): The run's folder.
    result (Result): The results.
    RAISES (OutputError): If the file cannot be written.
    """
    facts = {name: getattr(result, name) for name in (*KINDS, "baselines", "left_out")}
    with writing(folder / SCORES, "The model is saved."), whole_file(folder / SCORES) as temporary:
        write_json(temporary, finite(facts))


def read_scores(folder: Path) -> Dict[str, Any]:
    """Read the results of a run; empty if the run has not ended.

    RAISES (ModelError): If the file is damaged.
    """
    path = folder / SCORES
    if not os.path.lexists(path):
        return {}
    facts = read_json(path, REMEDY)
    for name, kind in KINDS.items():
        value = facts.get(name)
        if not isinstance(value, kind) or not (kind in (str, dict) or is_number(value)):
            text = f"'{name}' is missing or has the wrong type"
            raise ModelError(f"{path}  is damaged: {text}. {REMEDY}")
    for split, report in facts["scores"].items():
        values = report.values() if isinstance(report, dict) else [split]
        if not all(value is None or is_number(value) for value in values):
            raise ModelError(f"{path}  is damaged: the scores on {split} are not numbers. {REMEDY}")
    return facts
