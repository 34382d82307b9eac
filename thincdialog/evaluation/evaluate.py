"""``evaluate``: a saved model on one split of its data."""

from typing import Dict, List, Tuple

from ..training.experiment import CodeLike, Experiment, Overrides, PathLike
from .evaluate_agent import evaluate_agent, sample_exchanges
from .results import Exchange


def evaluate(
    path: PathLike, *, split: str = "test", overrides: Overrides = None, code: CodeLike = None
) -> Dict[str, float]:
    """Evaluate a saved model on one split of its task, or of each of its tasks.

    split (str): "train", "dev" or "test".
    overrides (Optional[Mapping[str, Any]]): Such as {"paths.test": "my_test.jsonl"}.
    RETURNS (Dict[str, float]): Metric name to value. Of several tasks, a metric has the
        value over all examples; ``<task>/<metric>`` has that of one task, and
        ``macro/<metric>`` the mean over tasks.
    RAISES (DialogError): If the model or the data cannot be used.
    """
    report, _ = evaluate_with_samples(path, 0, split=split, overrides=overrides, code=code)
    return report


def evaluate_with_samples(
    path: PathLike,
    n_samples: int,
    *,
    split: str = "test",
    overrides: Overrides = None,
    code: CodeLike = None,
) -> Tuple[Dict[str, float], List[List[Exchange]]]:
    """Like ``evaluate``, and the first conversations with the model's replies too."""
    experiment = Experiment.from_model(path, overrides, code)
    with experiment.working():
        teacher, agent = experiment.evaluation_split(split), experiment.agent
        report = evaluate_agent(agent, teacher, experiment.evaluation["world"])
        samples = sample_exchanges(agent, teacher, n_samples) if n_samples else []
    return report, samples
