"""What a picture of runs shows: panels, and the lines in them."""

import difflib
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..errors import DataError
from ..loggers.row_file import is_number
from ..runs.find_runs import Run

# What a row can be laid over, and what the axis then says.
AGAINST = {
    "step": "training steps",
    "epoch": "epochs",
    "examples": "training examples",
    "seconds": "seconds of training",
}
TITLES = {
    "loss_per_example": "loss per example (nats)",
    "loss_per_token": "loss per token (nats)",
    "examples_per_second": "examples/s",
    "tokens_per_second": "tokens/s",
    "padding_fraction": "padding (share)",
    "learn_rate": "learning rate",
    "gradient_norm": "norm of the gradient",
}
LOSS = "loss"
TRAIN, DEV = "train", "dev"


class Line(NamedTuple):
    """A curve of one run.

    run (str): The run's name.
    split (str): "train" or "dev".
    xs (List[float]): Where it was measured, ascending.
    ys (List[float]): The values; all are finite.
    best (Optional[int]): Place of the run's best row, in a panel of its score.
    """

    run: str
    split: str
    xs: List[float]
    ys: List[float]
    best: Optional[int] = None


@dataclass
class Panel:
    """The curves of one metric, one of each run that has it.

    metric (str): Its name.
    title (str): The name with the unit.
    lines (List[Line]): In the order of the runs.
    """

    metric: str
    title: str
    lines: List[Line] = field(default_factory=list)


def make_panels(
    runs: Sequence[Run], metrics: Optional[Sequence[str]] = None, against: str = "step"
) -> List[Panel]:
    """One panel for each metric.

    runs (Sequence[Run]): From ``find_runs``.
    metrics (Optional[Sequence[str]]): Names as in the scores ("hits@1", "loss") or in the
        rows ("learn_rate"); "train/..." and "dev/..." choose one where both are measured.
        "loss" is two panels, of training and of dev: among other candidates, one loss says
        nothing of the other. None: the losses, and the score of the runs.
    against (str): What they are laid over, one of ``AGAINST``.
    RAISES (DataError): If there is no row, or a metric was measured in no run.
    """
    if against not in AGAINST:
        raise ValueError(f"against should be one of {', '.join(AGAINST)}, got {against!r}")
    logged = [run for run in runs if run.rows]
    if not logged:
        where = runs[0].path if len(runs) == 1 else "these runs"
        raise DataError(where, "no evaluation has been logged yet, so there is nothing to plot.")
    scores = [run.rows[-1].get("score_name") for run in logged]
    chosen = dict.fromkeys(metrics or [LOSS, *(name for name in scores if name)])
    panels = []
    for name in dict.fromkeys(part for each in chosen for part in _parts(each, logged)):
        lines = [line for run in logged for line in _lines(run, name, against)]
        splits = ", ".join(sorted({line.split for line in lines}))
        titles = {LOSS: _loss_title(logged), **TITLES}
        title = titles.get(name) or f"{name} ({splits})"
        split, _, rest = name.partition("/")
        if split in (TRAIN, DEV) and rest:
            title = f"{split} {titles.get(rest, rest)}"
        if lines:
            panels.append(Panel(name, title, lines))
        elif metrics:
            raise DataError("--metrics", _unknown(name, logged))
    if not panels:
        raise DataError(logged[0].path, "no number has been logged yet: neither loss nor score.")
    return panels


def _loss_title(runs: Sequence[Run]) -> str:
    """What the losses of the runs are means of, as far as their training tells."""
    units = [
        unit
        for unit in ("example", "token")
        if any(row.get(f"loss_per_{unit}") is not None for run in runs for row in run.rows)
    ]
    return f"loss per {' or '.join(units)} (nats)" if units else "loss (nats)"


def _parts(name: str, runs: Sequence[Run]) -> List[str]:
    """What a metric that was asked for consists of: the loss, of those that were measured."""
    if name != LOSS:
        return [name]
    known = {key for run in runs for row in run.rows for key in measured(row)}
    return [key for key in (f"{TRAIN}/{LOSS}", f"{DEV}/{LOSS}") if key in known] or [name]


def measured(row: Mapping[str, Any]) -> Dict[str, float]:
    """Every number of a row: "train/..." for those of training, "dev/..." for the scores."""
    found = {f"{TRAIN}/{name}": value for name, value in row.items() if name != "score"}
    if "loss_per_example" in row:
        found[f"{TRAIN}/{LOSS}"] = row.get("loss_per_token", row["loss_per_example"])
    found.update({f"{DEV}/{name}": value for name, value in (row.get("scores") or {}).items()})
    return {name: float(value) for name, value in found.items() if is_number(value)}


def _lines(run: Run, name: str, against: str) -> List[Line]:
    known = {key for row in run.rows for key in measured(row)}
    # The dev data's, if both are there.
    names = [key for key in (name, f"{DEV}/{name}", f"{TRAIN}/{name}") if key in known]
    lines = []
    for key in names[:1]:
        split, _, metric = key.partition("/")
        points: List[Tuple[float, float]] = []
        best = None
        for row in _rows(run, split):
            value = measured(row)
            if key in value and against in row:
                if split == DEV and metric == row.get("score_name") and row.get("is_best"):
                    best = len(points)
                points.append((float(row[against]), value[key]))
        if points:
            xs, ys = map(list, zip(*points))
            lines.append(Line(run.name, split, xs, ys, best))
    return lines


def _rows(run: Run, split: str) -> Sequence[Mapping[str, Any]]:
    """Those of one length: a row of an evaluation tells of more steps than those of training
    between, which would make a saw of the curve."""
    of_training = [row for row in run.rows if not row.get("is_evaluation", True)]
    return of_training if of_training and split == TRAIN else run.rows


def _unknown(name: str, runs: Sequence[Run]) -> str:
    keys = {key for run in runs for row in run.rows for key in measured(row)}
    names = sorted({key.partition("/")[2] for key in keys})
    close = difflib.get_close_matches(name, [*names, *keys], 1)
    if close:
        return f"'{name}' was measured in none of the runs - did you mean '{close[0]}'?"
    return f"'{name}' was measured in none of the runs - choose from: {', '.join(names)}"
