"""Score a trained model at the end of a training, with intervals, for tables and model cards."""

from operator import attrgetter

from ..teachers import Teacher
from ..training.experiment import Experiment
from .bootstrap import N_RESAMPLES
from .intervals import find_intervals
from .results import Result
from .sums_recorder import SumsRecorder

# Largest split that gets intervals at the end of a training, because resampling a larger one takes
# long. ``evaluate`` computes its intervals.
MOST_EXAMPLES = 50_000


def score_split(result: Result, split: str, experiment: Experiment, teacher: Teacher) -> None:
    """Add the scores of a split to a result, with intervals if the result will be saved.

    result (Result): The result; changed in place.
    teacher (Teacher): Teacher of the split, for evaluation.
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
