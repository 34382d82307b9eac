"""Write and read files of predictions, with one JSON object per line and one line per example."""

from pathlib import Path
from typing import Any, Dict, Iterable, List, Sequence, Union

from ..errors import DataError
from ..files.json_file import as_json
from ..files.json_text import parse_json
from ..formats.output_file import open_output
from ..formats.text_file import read_lines
from ..metrics import ExampleMetric
from .predictions import Prediction

N_BEST = 10


def write_predictions(
    path: Union[str, Path],
    predictions: Iterable[Prediction],
    metrics: Sequence[ExampleMetric],
    n_best: int = N_BEST,
) -> int:
    """Write predictions: `id`, `task` (if there are several), `conversation` (if examples are
    turns), `context`, `text`, `labels`, `reply`, `candidates` with scores, `right` (whether the
    reply is a label), and `metrics` (the metrics that are means over examples, for this example).

    path (Union[str, Path]): File to write, completely or not at all; NAME.gz is compressed.
    predictions (Iterable[Prediction]): The predictions, in the order of the lines.
    metrics (Sequence[ExampleMetric]): The metrics to score by.
    n_best (int): Number of candidates to write for each reply.
    RETURNS (int): Number of lines.
    RAISES (OutputError): If the file cannot be written; an existing file is then unchanged.
    """
    n_lines = 0
    with open_output(path, force=True) as write:
        for prediction in predictions:
            write(as_json(prediction.as_json(metrics, n_best)))
            n_lines += 1
    return n_lines


def read_predictions(path: Union[str, Path]) -> List[Dict[str, Any]]:
    """Read the rows of a file of predictions.

    RETURNS (List[Dict[str, Any]]): Rows with `id` (str), `labels` (list) and `metrics` (name to
        number).
    RAISES (DataError): If the file cannot be read, or is not a file of predictions.
    """
    lines = read_lines(path)
    rows = [_checked(path, line, number) for number, line in lines if line.strip()]
    if not rows:
        raise DataError(path, "holds no predictions: write them with evaluate --predictions FILE")
    return rows


def _checked(path: Union[str, Path], line: str, number: int) -> Dict[str, Any]:
    """Parse and check a line of a file of predictions."""
    try:
        row = parse_json(line)
    except ValueError:
        raise DataError(path, "is not a JSON object", number) from None
    kinds = {"id": str, "labels": list, "metrics": dict}
    for name, kind in kinds.items():
        if not isinstance(row, dict) or not isinstance(row.get(name), kind):
            text = f"has no '{name}': write predictions with evaluate --predictions FILE"
            raise DataError(path, text, number)
    for name, value in row["metrics"].items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise DataError(path, f"the metric '{name}' is not a number: {value!r}", number)
    return row
