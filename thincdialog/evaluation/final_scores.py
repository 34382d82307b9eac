"""What the trained model is worth: scores with intervals, for tables and model cards."""

from operator import attrgetter

from ..teachers import Teacher
from ..training.experiment import Experiment
from .bootstrap import N_RESAMPLES
from .intervals import find_intervals
from .results import Result
from .sums_recorder import SumsRecorder

# Of a larger split there are no intervals at the end of a training: to draw its examples takes
# long. ``evaluate`` does it.
MOST_EXAMPLES = 50_000


def score_split(result: Result, split: str, experiment: Experiment, teacher: Teacher) -> None:
    """Put the scores of a split into a result; with intervals, if it is to be saved.

    teacher (Teacher): Of the split, to evaluate on.
    """
    runner = experiment.runner
    if result.output is None or (teacher.n_examples or 0) > MOST_EXAMPLES:
        result.scores[split] = runner.evaluate(experiment, teacher)
        return
    recorder = SumsRecorder(experiment.metrics, MOST_EXAMPLES)
    scores = runner.evaluate(experiment, teacher, recorder)
    result.scores[split] = scores
    known, reports = recorder.predictions, recorder.reports
    found = find_intervals(known, attrgetter("sums"), reports, scores, N_RESAMPLES)
    if recorder.is_whole and found.intervals:
        result.intervals[split] = found.intervals
        result.drawn[split] = f"{found.n_drawn:,} {found.what}, drawn {N_RESAMPLES:,} times"
