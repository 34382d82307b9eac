"""Test whether one of two models is really better, by the paired bootstrap.

Both models answered the same examples, so both are resampled together. Examples that are easy
or hard for both models then change both scores alike, and cancel out in the difference. (Koehn
2004, https://aclanthology.org/W04-3250)
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy

from ..errors import DataError
from ..messages import Message
from ..metrics import AverageMetric, merge_reports, merge_tasks
from ..metrics.metric import Report, higher_is_better, is_share
from ..metrics.usual import is_added
from ..training.experiment import CodeLike, Overrides, PathLike
from .bootstrap import N_RESAMPLES, Values, draw, interval
from .evaluate import evaluate_in_detail
from .predictions import Prediction, report_of
from .predictions_file import read_predictions

Rows = Dict[str, List[Prediction]]
Scoring = Callable[[Sequence[Prediction]], Report]
Reports = Mapping[str, Report]


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
    (first, report), (second, own) = (_read(path, split, overrides, code) for path in (a, b))
    if not (Path(a).is_file() or Path(b).is_file()):
        own = report
    names = f"{a} and {b}"
    second = _in_order_of(first, second, names)
    one = {task: report(rows) for task, rows in first.items()}
    other = {task: own(rows) for task, rows in second.items()}
    in_a = draw(first, report, _common(one, other), n_resamples)
    in_b = draw(second, own, _common(other, one), n_resamples)
    differences = _differences(merge_tasks(one), merge_tasks(other), in_a.values, in_b.values)
    if not differences:
        text = "cannot be compared: they have no metric in common. Files of predictions "
        text += "hold means over examples only, such as accuracy: compare the models instead."
        if in_a.n_drawn <= len(first):
            text = "cannot be compared on one conversation or example: give data with 2 or more."
        raise DataError(names, text)
    n_examples = sum(map(len, first.values()))
    return Comparison(differences, in_a.what, in_a.n_drawn, n_examples, n_resamples)


def _common(reports: Reports, others: Reports) -> Reports:
    """Return the metrics of each task that others also have."""
    return {
        task: {name: m for name, m in report.items() if type(others[task].get(name)) is type(m)}
        for task, report in reports.items()
    }


def _differences(one: Report, other: Report, of_a: Values, of_b: Values) -> List[MetricDifference]:
    """Return the differences in all metrics with values in resamples, then in other metrics that
    the config has added."""
    found = []
    for name in [name for name in of_a if name in of_b and name in one]:
        a, b, drawn = one[name].value(), other[name].value(), of_b[name] - of_a[name]
        low, high = interval(drawn)
        winner = ""
        if low > 0 or high < 0:
            better = higher_is_better(name, one[name])
            winner = "?" if better is None else "B" if (low > 0) is better else "A"
        found.append(MetricDifference(name, a, b, b - a, low, high, two_sided(drawn), winner))
    known = {each.metric for each in found}
    for name in one:
        if name not in known and name in other and is_added(name.rpartition("/")[2]):
            a, b = one[name].value(), other[name].value()
            found.append(MetricDifference(name, a, b, b - a, None, None, None, ""))
    return found


def two_sided(drawn: numpy.ndarray) -> float:
    """Return the two-sided p-value of differences: twice the fraction on the rarer side of 0. The
    observed difference counts as one more resample on that side."""
    rarer = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    return min(1.0, 2 * (rarer + 1) / (len(drawn) + 1))


# --- the two sides --------------------------------------------------------------------


def _recorded(rows: Sequence[Prediction]) -> Report:
    """Return the metrics that a file of predictions has for some replies."""
    known = (row.reply["metrics"].items() for row in rows)
    return merge_reports(*({n: AverageMetric(value, 1) for n, value in own} for own in known))


def _read(path: PathLike, split: str, overrides: Overrides, code: CodeLike) -> Tuple[Rows, Scoring]:
    """Return the replies of each task, and the function that scores them."""
    if not Path(path).is_file():
        found = evaluate_in_detail(path, split=split, overrides=overrides, code=code, n_resamples=0)
        return found.predictions, partial(report_of, metrics=found.metrics)
    rows: Rows = {}
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
    return rows, _recorded


def _in_order_of(first: Rows, second: Rows, names: str) -> Rows:
    """Return the replies of the second side in the order of the first, and in its conversations.

    names (str): Names of both sides, for errors.
    RAISES (DataError): If the sides do not have the same examples.
    """
    if set(first) != set(second):
        tasks = [", ".join(sorted(filter(None, side))) or "one" for side in (first, second)]
        raise DataError(names, f"cannot be compared: their tasks differ ({tasks[0]}; {tasks[1]})")
    found: Rows = {}
    for task, rows in first.items():
        keys = _keys(rows)
        of_key = dict(zip(_keys(second[task]), second[task]))
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
        found[task] = [
            replace(of_key[key], conversation=one.conversation) for key, one in zip(keys, rows)
        ]
        for one, other in zip(rows, found[task]):
            what, labels = "", (list(one.labels or ()), list(other.labels or ()))
            n_candidates = (one.n_candidates, other.n_candidates)
            if labels[0] != labels[1]:
                what = f"labels of '{one.id}' differ: {labels[0]} and {labels[1]}"
            elif all(n_candidates) and n_candidates[0] != n_candidates[1]:
                what = f"candidates of '{one.id}' differ: {n_candidates[0]} and {n_candidates[1]}. "
                what += "Set the same --evaluation.n_candidates for both"
            if what:
                raise DataError(names, f"cannot be compared: the {what}.")
    return found


def _keys(rows: Sequence[Prediction]) -> List[Tuple[str, int]]:
    """Return each id with the number of earlier rows of the same id, because ids in users' data may
    repeat."""
    seen: Counter = Counter()
    keys = []
    for row in rows:
        keys.append((row.id, seen[row.id]))
        seen[row.id] += 1
    return keys
