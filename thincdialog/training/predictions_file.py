"""Files of predictions: one JSON object a line, one line an example."""

import json
import os
import uuid
from pathlib import Path
from typing import Any, Dict, Iterable, List, Sequence, Union

from ..errors import DataError, OutputError
from ..metrics import ExampleMetric
from .predictions import Prediction

N_BEST = 10


def write_predictions(
    path: Union[str, Path],
    predictions: Iterable[Prediction],
    metrics: Sequence[ExampleMetric],
    n_best: int = N_BEST,
) -> int:
    """Write predictions: `id`, `task` (of several), `conversation` (of turns), `context`,
    `text`, `labels`, `reply`, `candidates` with scores, whether the reply is a label
    (`right`), and the `metrics` of the example alone that are means over examples.

    path (Union[str, Path]): Written whole or not at all: beside, then renamed.
    metrics (Sequence[ExampleMetric]): What to score by.
    n_best (int): So many candidates of each reply.
    RETURNS (int): Number of lines.
    RAISES (OutputError): If it cannot be written; an old file stays as it was.
    """
    path = Path(path)
    n_lines = 0
    target = path.resolve()  # A link stays a link.
    beside = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    is_plain = target.is_file() or not target.exists()  # Not such as /dev/stdout.
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with (beside if is_plain else target).open("wb") as file:
                for prediction in predictions:
                    file.write(_line(prediction.as_json(metrics, n_best)))
                    n_lines += 1
                file.flush()
                if is_plain:
                    os.fsync(file.fileno())
            if is_plain:
                beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"{path}  cannot be written: {reason}.") from None
    return n_lines


def _line(row: Dict[str, Any]) -> bytes:
    try:
        return json.dumps(row, ensure_ascii=False).encode("utf8") + b"\n"
    except UnicodeEncodeError:  # Lone surrogates have no UTF-8 form; JSON escapes do.
        return json.dumps(row).encode("ascii") + b"\n"


def read_predictions(path: Union[str, Path]) -> List[Dict[str, Any]]:
    """The lines of a file of predictions.

    RETURNS (List[Dict[str, Any]]): Each has `id` (str), `labels` (list) and `metrics`
        (name to number).
    RAISES (DataError): If the file cannot be read, or is not such a file.
    """
    rows = []
    try:
        with Path(path).open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    rows.append(_checked(path, line, number))
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}") from None
    if not rows:
        raise DataError(path, "holds no predictions: write them with evaluate --predictions FILE")
    return rows


def _checked(path: Union[str, Path], line: bytes, number: int) -> Dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise DataError(path, "is not a JSON object", number) from None
    kinds = {"id": str, "labels": list, "metrics": dict}
    for name, kind in kinds.items():
        if not isinstance(row, dict) or not isinstance(row.get(name), kind):
            text = f"has no '{name}': write predictions with evaluate --predictions FILE"
            raise DataError(path, text, number)
    for name, value in row["metrics"].items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise DataError(path, f"the metric '{name}' is no number: {value!r}", number)
    return row
