"""Test whether one of two models is really better, by the paired bootstrap.

Both models answered the same examples, so both are resampled together. Examples that are easy
or hard for both models then change both scores alike, and cancel out in the difference. (Koehn
2004, https://aclanthology.org/W04-3250)
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy

from ..errors import DataError
from ..messages import Message
from ..metrics import AverageMetric, ExampleMetric, Metric, merge_reports, merge_tasks
from ..metrics.metric import Report, higher_is_better, is_share
from ..metrics.usual import is_added
from ..training.experiment import CodeLike, Overrides, PathLike
from .bootstrap import N_RESAMPLES, Resampled, Values, interval, resample, sums_of, task_values
from .detail import evaluate_in_detail
from .predictions import Prediction, report_of
from .predictions_file import read_predictions


@dataclass
class MetricDifference:
    """Hold the difference of two models in one metric.

    metric (str): Name of the metric.
    a (float): Value of the first model.
    b (float): Value of the second model.
    difference (float): b - a.
    low (Optional[float]): Lower end of the 95 % interval of the difference; None if there is
        no interval, because the metric is not a function of sums over examples.
    high (Optional[float]): Upper end of the interval; None if there is no interval.
    p_value (Optional[float]): Probability of a difference at least this far from 0 if the models
        were equal; two-sided, and never below 2 / (n_resamples + 1). None if there is no interval.
    winner (str): The better model, "A" or "B", if the interval does not contain 0; "?" if it is
        not known whether higher is better; "" if the interval contains 0, or does not exist.
    """

    metric: str
    a: float
    b: float
    difference: float
    low: Optional[float]
    high: Optional[float]
    p_value: Optional[float]
    winner: str

    def verdict(self) -> str:
        """Describe the outcome in words."""
        if self.low is None or self.high is None:
            return f"{self.metric} has no interval, so its difference cannot be tested"
        if not self.winner:
            return f"no significant difference in {self.metric} was found"
        scale, unit = (100, " points") if is_share(self.metric) else (1, "")
        ends = sorted(abs(end) * scale for end in (self.low, self.high))
        amount = f"by {abs(self.difference) * scale:.3g}{unit}"
        spread = f"(95 % interval {ends[0]:.3g} to {ends[1]:.3g})"
        if self.winner == "?":
            return f"A and B differ in {self.metric} {amount} {spread}"
        return f"{self.winner} is better in {self.metric} {amount} {spread}"


@dataclass
class Comparison:
    """Hold the result of ``compare()``.

    differences (List[MetricDifference]): The difference in each metric.
    drawn (str): Unit of the resamples: "examples" or "conversations".
    n_drawn (int): Number of these units.
    n_examples (int): Number of examples that both models answered.
    n_resamples (int): Number of resamples.
    """

    differences: List[MetricDifference]
    drawn: str
    n_drawn: int
    n_examples: int
    n_resamples: int

    def as_json(self) -> Dict[str, Any]:
        """Return all fields, with verdicts, as JSON values."""
        rows = [{**vars(one), "verdict": one.verdict()} for one in self.differences]
        return {**vars(self), "differences": rows}


@dataclass
class _Side:
    """Hold one of the two sides: its examples, its metrics, and their totals. The metrics are None
    for a file of predictions, because its lines hold the values of the metrics."""

    name: str
    metrics: Optional[Sequence[ExampleMetric]]
    rows: Dict[str, List[Prediction]]
    totals: Dict[str, Dict[str, Metric]]

    def report(self, row: Prediction) -> Report:
        """Report the metrics of one example."""
        if self.metrics is None:
            return _report_of_line(row)
        return report_of([row], self.metrics)


def compare(
    a: PathLike,
    b: PathLike,
    *,
    split: str = "test",
    overrides: Overrides = None,
    code: CodeLike = None,
    n_resamples: int = N_RESAMPLES,
) -> Comparison:
    """Compare two models on the same examples.

    a (Union[str, Path]): Folder of a saved model, or a file of predictions
        (``write_predictions``). Files hold only metrics that are means over examples.
    b (Union[str, Path]): Folder of another model, or another file of predictions.
    split (str): Split of the models' data: "train", "dev" or "test".
    overrides (Optional[Mapping[str, Any]]): Changes to both configs.
    code (CodeLike): One or more Python files that register the functions that the configs name.
    n_resamples (int): Number of resamples of the bootstrap, 1 or more.
    RETURNS (Comparison): Differences in the metrics that both sides have. If a is a model, the
        replies of both models are scored by the metrics of its config.
    RAISES (DialogError): If a model or file cannot be used, or the examples differ.
    """
    first = _side(a, None, split, overrides, code)
    second = _side(b, first.metrics, split, overrides, code)
    _check_same_examples(first, second)
    values = []
    for side, other in ((first, second), (second, first)):
        resampled: Dict[str, Dict[str, Resampled]] = {}
        for number, task in enumerate(first.rows):
            totals = {
                name: metric
                for name, metric in side.totals[task].items()
                if type(other.totals[task].get(name)) is type(metric)
            }
            conversations = [row.conversation for row in first.rows[task]]
            sums = (sums_of(side.report(row)) for row in side.rows[task])
            resampled[task] = resample(sums, conversations, totals, n_resamples, number)
        known = [task for task, rows in side.rows.items() if rows]
        values.append(task_values(resampled, known))
    differences = _differences(first, second, values)
    units = [{row.conversation for row in rows} for rows in first.rows.values()]
    if not differences:
        text = "cannot be compared: they have no metric in common. Files of predictions "
        text += "hold means over examples only, such as accuracy: compare the models instead."
        if all(len(unit) < 2 for unit in units):
            text = "cannot be compared on one conversation or example: give data with 2 or more."
        raise DataError(f"{first.name} and {second.name}", text)
    n_drawn, n_examples = sum(map(len, units)), sum(map(len, first.rows.values()))
    return Comparison(
        differences,
        "examples" if n_drawn == n_examples else "conversations",
        n_drawn,
        n_examples,
        n_resamples,
    )


def _differences(first: _Side, second: _Side, values: Sequence[Values]) -> List[MetricDifference]:
    reports = [
        side.totals[""]
        if list(side.totals) == [""]
        else merge_tasks({task: side.totals[task] for task, rows in side.rows.items() if rows})
        for side in (first, second)
    ]
    of_a, of_b = values
    found = []
    for name in of_a:
        if name not in of_b or name not in reports[0]:
            continue
        a, b = (report[name].value() for report in reports)
        drawn = of_b[name] - of_a[name]
        low, high = interval(drawn)
        winner = ""
        if low > 0 or high < 0:
            better = higher_is_better(name, reports[0][name])
            winner = "?" if better is None else "B" if (low > 0) is better else "A"
        p_value = two_sided(drawn)
        found.append(MetricDifference(name, a, b, b - a, low, high, p_value, winner))
    known = {one.metric for one in found}
    for name in reports[0]:
        if name not in known and name in reports[1] and is_added(name.rpartition("/")[2]):
            a, b = (report[name].value() for report in reports)
            found.append(MetricDifference(name, a, b, b - a, None, None, None, ""))
    return found


def two_sided(drawn: numpy.ndarray) -> float:
    """Return the two-sided p-value of differences: twice the fraction on the rarer side of 0. The
    observed difference counts as one more resample on that side."""
    rarer = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    return min(1.0, 2 * (rarer + 1) / (len(drawn) + 1))


# --- the two sides --------------------------------------------------------------------


def _side(path: PathLike, metrics: Any, split: str, overrides: Overrides, code: CodeLike) -> _Side:
    if Path(path).is_file():
        rows: Dict[str, List[Prediction]] = {}
        for line in read_predictions(path):
            row = Prediction(
                id=line["id"],
                labels=line["labels"],
                reply=Message(metrics=line["metrics"]),
                task=str(line.get("task", "")),
                conversation=str(line.get("conversation", line["id"])),
                n_candidates=line.get("n_candidates", 0),
            )
            rows.setdefault(row.task, []).append(row)
        totals = {task: merge_reports(*map(_report_of_line, own)) for task, own in rows.items()}
        return _Side(str(path), None, rows, totals)
    found = evaluate_in_detail(path, split=split, overrides=overrides, code=code, n_resamples=0)
    metrics = found.metrics if metrics is None else metrics
    totals = {task: report_of(own, metrics) for task, own in found.predictions.items()}
    return _Side(str(path), metrics, found.predictions, totals)


def _report_of_line(row: Prediction) -> Report:
    return {name: AverageMetric(value, 1) for name, value in row.reply["metrics"].items()}


def _check_same_examples(first: _Side, second: _Side) -> None:
    """Check that both sides have the same examples, and sort those of the second side into the
    order of the first side.

    RAISES (DataError): If the examples differ.
    """
    names = f"{first.name} and {second.name}"
    if set(first.rows) != set(second.rows):
        tasks = [", ".join(sorted(filter(None, side.rows))) or "one" for side in (first, second)]
        raise DataError(names, f"cannot be compared: their tasks differ ({tasks[0]}; {tasks[1]})")
    for task, rows in first.rows.items():
        keys = _keys(rows)
        of_key = dict(zip(_keys(second.rows[task]), second.rows[task]))
        here, there = {*keys} - {*of_key}, {*of_key} - {*keys}
        if here or there:
            odd, _ = min(here or there)
            where = f" of the task '{task}'" if task else ""
            text = (
                f"cannot be compared: their examples{where} differ. {len(here):,} are only in the "
            )
            text += f"first, {len(there):,} only in the second, such as '{odd}'. Evaluate both on "
            text += "the same data, with the same [evaluation] max_examples."
            raise DataError(names, text)
        second.rows[task] = [of_key[key] for key in keys]
        for one, other in zip(rows, second.rows[task]):
            what, labels = "", (list(one.labels or ()), list(other.labels or ()))
            n_candidates = (one.n_candidates, other.n_candidates)
            if labels[0] != labels[1]:
                what = f"labels of '{one.id}' differ: {labels[0]} and {labels[1]}"
            elif all(n_candidates) and n_candidates[0] != n_candidates[1]:
                what = f"candidates of '{one.id}' differ: {n_candidates[0]} and {n_candidates[1]}. "
                what += "Set the same --evaluation.n_candidates for both"
            if what:
                raise DataError(names, f"cannot be compared: the {what}.")
    second.rows = {task: second.rows[task] for task in first.rows}


def _keys(rows: Sequence[Prediction]) -> List[Tuple[str, int]]:
    """Return each id with the number of earlier rows of the same id, because ids in users' data may
    repeat."""
    seen: Counter = Counter()
    keys = []
    for row in rows:
        keys.append((row.id, seen[row.id]))
        seen[row.id] += 1
    return keys
