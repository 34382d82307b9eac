"""Select the data for a plot of runs: panels, and the lines in them."""

from itertools import chain
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set

from ..errors import DataError, closest
from ..loggers.row_file import is_number
from ..runs.find_runs import Run

# Key of the x axis to the label of the axis.
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
    """Hold a curve of one run.

    run (str): Name of the run.
    split (str): "train" or "dev".
    xs (List[float]): Positions of the measurements on the x axis, ascending.
    ys (List[float]): Values; all are finite.
    best (Optional[int]): Index of the run's best row, in the panel of the run's score.
    """

    run: str
    split: str
    xs: List[float]
    ys: List[float]
    best: Optional[int] = None


class Panel(NamedTuple):
    """Hold the curves of one metric, one for each run that has it.

    metric (str): Name of the metric.
    title (str): Title of the panel, with the unit.
    lines (List[Line]): Curves in the order of the runs.
    """

    metric: str
    title: str
    lines: List[Line]


def make_panels(
    runs: Sequence[Run], metrics: Optional[Sequence[str]] = None, against: str = "step"
) -> List[Panel]:
    """Make one panel for each metric.

    runs (Sequence[Run]): Runs that ``find_runs`` returned.
    metrics (Optional[Sequence[str]]): Names as in the scores ("hits@1", "loss") or in the rows
        ("learn_rate"); "train/..." and "dev/..." choose one if both are measured. "loss" makes two
        panels, one for training and one for dev, because their losses are not comparable if the
        candidates differ. None for the losses and the score of the runs.
    against (str): Key of the x axis, one of ``AGAINST``.
    RAISES (DataError): If there are no rows, or no run measured a metric.
    """
    if against not in AGAINST:
        raise ValueError(f"against should be one of {', '.join(AGAINST)}, got {against!r}")
    logged = [run for run in runs if run.rows]
    if not logged:
        where = runs[0].path if len(runs) == 1 else "these runs"
        raise DataError(where, "no evaluation has been logged yet, so there is nothing to plot.")
    of_runs = [_lines(run, against) for run in logged]
    known = {key for lines in of_runs for key in lines}
    units = [unit for unit in ("example", "token") if f"{TRAIN}/loss_per_{unit}" in known]
    loss = f"loss per {' or '.join(units)} (nats)" if units else "loss (nats)"
    titles = {LOSS: loss, **TITLES}
    scores = [run.rows[-1].get("score_name") for run in logged]
    wanted = metrics or [LOSS, *filter(None, scores)]
    losses = [key for key in (f"{TRAIN}/{LOSS}", f"{DEV}/{LOSS}") if key in known]
    parts = (losses if name == LOSS and losses else [name] for name in wanted)
    panels = []
    for name in dict.fromkeys(chain.from_iterable(parts)):
        lines: List[Line] = []
        for of_run in of_runs:
            # If both splits have the metric, dev is used.
            keys = (name, f"{DEV}/{name}", f"{TRAIN}/{name}")
            lines += [of_run[key] for key in keys if key in of_run][:1]
        splits = ", ".join(sorted({line.split for line in lines}))
        title = titles.get(name) or f"{name} ({splits})"
        split, _, rest = name.partition("/")
        if split in (TRAIN, DEV) and rest:
            title = f"{split} {titles.get(rest, rest)}"
        if lines:
            panels.append(Panel(name, title, lines))
        elif metrics:
            raise DataError("--metrics", _unknown(name, known))
    if not panels:
        raise DataError(logged[0].path, "no number has been logged yet: neither loss nor score.")
    return panels


def measured(row: Mapping[str, Any]) -> Dict[str, float]:
    """Collect every number of a row: "train/..." for training, "dev/..." for the scores."""
    found = {f"{TRAIN}/{name}": value for name, value in row.items() if name != "score"}
    if "loss_per_example" in row:
        found[f"{TRAIN}/{LOSS}"] = row.get("loss_per_token", row["loss_per_example"])
    found.update({f"{DEV}/{name}": value for name, value in (row.get("scores") or {}).items()})
    return {name: float(value) for name, value in found.items() if is_number(value)}


def _lines(run: Run, against: str) -> Dict[str, Line]:
    """Return the curves of all numbers in a run's rows, by the names of ``measured``."""
    has_others = not all(row.get("is_evaluation", True) for row in run.rows)
    lines: Dict[str, Line] = {}
    for row in run.rows:
        is_evaluation = row.get("is_evaluation", True)
        for name, value in measured(row).items() if against in row else ():
            split, _, metric = name.partition("/")
            # For training, rows of evaluations are left out if there are others, because they cover
            # more steps, so mixing both would make the curve jagged.
            if split == TRAIN and is_evaluation and has_others:
                continue
            line = lines.setdefault(name, Line(run.name, split, [], []))
            if split == DEV and metric == row.get("score_name") and row.get("is_best"):
                lines[name] = line._replace(best=len(line.xs))
            line.xs.append(float(row[against]))
            line.ys.append(value)
    return lines


def _unknown(name: str, known: Set[str]) -> str:
    names = sorted({key.partition("/")[2] for key in known})
    if close := closest(name, [*names, *known]):
        return f"'{name}' was not measured in any run - did you mean '{close}'?"
    return f"'{name}' was not measured in any run - choose from: {', '.join(names)}"
