"""What the trained model is worth: scores with intervals, for tables and model cards."""

from ..teachers import Teacher
from ..training.experiment import Experiment
from .bootstrap import N_RESAMPLES
from .detail import agent_in_detail
from .evaluate_agent import evaluate_agent
from .results import Result

# Of a larger split there are no intervals at the end of a training: every reply would be
# held in memory. ``evaluate`` gives them.
MOST_EXAMPLES = 50_000


def score_split(result: Result, split: str, experiment: Experiment, teacher: Teacher) -> None:
    """Put the scores of a split into a result; with intervals, if it is to be saved.

    teacher (Teacher): Of the split, to evaluate on.
    """
    n_examples = teacher.n_examples
    if result.output is None or n_examples is None or n_examples > MOST_EXAMPLES:
        make_world = experiment.evaluation["world"]
        result.scores[split] = evaluate_agent(experiment.agent, teacher, make_world)
        return
    found = agent_in_detail(experiment, teacher, split)
    result.scores[split] = found.scores
    if found.intervals:
        result.intervals[split] = found.intervals
        result.drawn[split] = f"{found.n_drawn:,} {found.drawn}, drawn {N_RESAMPLES:,} times anew"
