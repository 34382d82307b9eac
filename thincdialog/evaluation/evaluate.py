"""Evaluate a saved model; in detail, with intervals and the reply to every example."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Dict, List, Sequence, Tuple

import numpy

from ..errors import DialogError
from ..formats.context import BadData, tolerating
from ..metrics import ExampleMetric
from ..metrics.confusion import ConfusionMatrix, confusion_matrix
from ..metrics.example_metric import can_score
from ..protocol import Agent
from ..teachers import Teacher
from ..training.experiment import CodeLike, Experiment, Overrides, PathLike
from .bootstrap import N_RESAMPLES, draw, interval
from .calibration import calibration_error, in_scope, tempered
from .coverage import Guesses
from .predictions import Prediction, Recorder, report_of
from .unreachable import unreachable_labels


@dataclass
class Evaluation:
    """Hold the result of ``evaluate_in_detail()``.

    agent (Agent): The agent that was evaluated.
    split (str): "train", "dev" or "test".
    scores (Dict[str, float]): Metric name to value, as ``evaluate()`` returns them.
    intervals (Dict[str, Tuple[float, float]]): Metric name to the ends of its 95 % interval
        (percentile bootstrap). A metric has none if it is not a function of sums over examples, or
        does not vary among them.
    drawn (str): Unit of the resamples: "examples", or "conversations" if examples are the turns
        of conversations.
    n_drawn (int): Number of these units.
    n_resamples (int): Number of resamples.
    predictions (Dict[str, List[Prediction]]): Task name ("" if there is only one) to the replies.
    metrics (Sequence[ExampleMetric]): The metrics that replies are scored by.
    bad_data (List[BadData]): Skipped rows and their problems, one entry for each file.
    warning (str): The reason why the scores mean little (see ``unreachable_labels``); "" if there
        is none.
    """

    agent: Agent
    split: str
    scores: Dict[str, float]
    intervals: Dict[str, Tuple[float, float]]
    drawn: str
    n_drawn: int
    n_resamples: int
    predictions: Dict[str, List[Prediction]] = field(default_factory=dict)
    metrics: Sequence[ExampleMetric] = ()
    bad_data: List[BadData] = field(default_factory=list)
    warning: str = ""

    @property
    def rows(self) -> List[Prediction]:
        """All replies, task by task."""
        return [row for rows in self.predictions.values() for row in rows]

    @property
    def labelled(self) -> List[Prediction]:
        """The replies to examples with labels."""
        return [row for row in self.rows if row.labels]

    @property
    def scored(self) -> List[Prediction]:
        """The replies that are scored."""
        return [row for row in self.rows if can_score(row.labels, self.metrics)]

    @property
    def threshold(self) -> float:
        """The model's threshold; 0.0 if it has none."""
        return self.agent.rejects_below or 0.0

    def calibration(self) -> Dict[str, float]:
        """Return the `temperature` of a classifier, and the expected calibration error on texts in
        scope, `before` the temperature was fitted and `after`. Return {} for other agents, or if
        no text is in scope."""
        temperature = self.agent.temperature
        P, right = in_scope(self.labelled if temperature else [], self.agent.reject_class)
        if not temperature or not len(right):
            return {}
        before = calibration_error(tempered(P, 1 / temperature), right)
        return {"temperature": temperature, "before": before, "after": calibration_error(P, right)}

    def guesses(self) -> Guesses:
        """Return the best class of each example with a label, to see the effect of a threshold.

        RAISES (DialogError): If the model is not a classifier with one class per text, or no
            example has a label.
        """
        if self.agent.temperature is None or not self.labelled:
            text = "thresholds need a classifier with one class per text, and labelled data"
            raise DialogError(f"there is nothing to count: {text}")
        return Guesses.of(self.labelled, self.agent)

    def confusion(self) -> ConfusionMatrix:
        """Count how often each class was predicted for examples of each class.

        RAISES (DataError): If the labels are not classes.
        """
        known = [(row.labels or (), row.reply) for row in self.scored]
        return confusion_matrix(known, f"the {self.split} data")

    @property
    def has_classes(self) -> bool:
        """Whether all replies come from a classifier."""
        return bool(self.rows) and all("classes" in row.reply for row in self.rows)

    @property
    def has_label_sets(self) -> bool:
        """Whether replies are compared with all labels of a text."""
        return any(metric.compares_sets for metric in self.metrics)

    def as_json(self) -> Dict[str, Any]:
        """Return every score by its name, and `intervals`, `drawn`, `n_drawn` and `n_resamples`,
        as JSON values; for a classifier also `calibration`."""
        calibration = self.calibration()
        return {
            **self.scores,
            "intervals": {name: list(ends) for name, ends in self.intervals.items()},
            "drawn": self.drawn,
            "n_drawn": self.n_drawn,
            "n_resamples": self.n_resamples,
            **({"calibration": calibration} if calibration else {}),
        }


def evaluate(
    path: PathLike, *, split: str = "test", overrides: Overrides = None, code: CodeLike = None
) -> Dict[str, float]:
    """Evaluate a saved model on one split of its task, or of each of its tasks.

    path (Union[str, Path]): Folder of the model.
    split (str): "train", "dev" or "test".
    overrides (Optional[Mapping[str, Any]]): Changes to the model's config, such as
        {"paths.test": "my_test.jsonl"}.
    code (CodeLike): One or more Python files that register the functions that the config names.
    RETURNS (Dict[str, float]): Metric name to value. With several tasks, ``<metric>`` is the value
        for all examples, ``<task>/<metric>`` for one task, and ``macro/<metric>`` the mean over
        tasks.
    RAISES (DialogError): If the model or the data cannot be used.
    """
    experiment = Experiment.from_model(path, overrides, code)
    with experiment.working():
        teacher = experiment.evaluation_split(split)
        scores: Dict[str, float] = experiment.runner.evaluate(experiment, teacher)
        return scores


def evaluate_in_detail(
    path: PathLike,
    *,
    split: str = "test",
    overrides: Overrides = None,
    code: CodeLike = None,
    n_resamples: int = N_RESAMPLES,
    labels_needed: bool = True,
) -> Evaluation:
    """Evaluate a saved model like ``evaluate()``, and also return intervals and every reply.

    path (Union[str, Path]): Folder of the model.
    split (str): "train", "dev" or "test".
    overrides (Optional[Mapping[str, Any]]): Changes to the model's config, such as
        {"paths.test": "my_test.jsonl"}.
    code (CodeLike): One or more Python files that register the functions that the config names.
    n_resamples (int): Number of resamples of the bootstrap; 0 for no intervals.
    labels_needed (bool): Whether examples without a label are an error. If not, they are answered
        but not scored.
    RAISES (DialogError): If the model or the data cannot be used.
    """
    experiment = Experiment.from_model(path, overrides, code)
    with experiment.working(), tolerating(unlabelled=not labels_needed):
        teacher = experiment.evaluation_split(split)
        found = agent_in_detail(experiment, teacher, split, n_resamples)
        found.bad_data = list(experiment.bad_data().values())
        return found


def agent_in_detail(
    experiment: Experiment, teacher: Teacher, split: str, n_resamples: int = N_RESAMPLES
) -> Evaluation:
    """Evaluate an experiment's agent like ``evaluate_agent``, and also return intervals and every
    reply.

    teacher (Teacher): Teacher of the split, for evaluation.
    split (str): Name of the split.
    n_resamples (int): Number of resamples of the bootstrap; 0 for no intervals.
    """
    metrics, recorder = experiment.metrics, Recorder()
    scores = experiment.runner.evaluate(experiment, teacher, recorder)
    rows = recorder.predictions
    report = partial(report_of, metrics=metrics)
    totals = {task: report(own) for task, own in rows.items()}
    drawn = draw(rows, report, totals, n_resamples)
    intervals = {
        name: interval(drawn.values[name])
        for name in scores
        # If all examples have the same value, resamples carry no information.
        if name in drawn.values and numpy.ptp(drawn.values[name]) > 0
    }
    return Evaluation(
        agent=experiment.agent,
        split=split,
        scores=scores,
        intervals=intervals,
        drawn=drawn.what,
        n_drawn=drawn.n_drawn,
        n_resamples=n_resamples,
        predictions=rows,
        metrics=list(metrics),
        warning=unreachable_labels(experiment.agent, teacher),
    )
