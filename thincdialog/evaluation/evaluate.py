"""``evaluate``: a saved model on one split of its data."""

from typing import Dict

from ..training.experiment import CodeLike, Experiment, Overrides, PathLike


def evaluate(
    path: PathLike, *, split: str = "test", overrides: Overrides = None, code: CodeLike = None
) -> Dict[str, float]:
    """Evaluate a saved model on one split of its task, or of each of its tasks.

    split (str): "train", "dev" or "test".
    overrides (Optional[Mapping[str, Any]]): Such as {"paths.test": "my_test.jsonl"}.
    RETURNS (Dict[str, float]): Metric name to value. Of several tasks, that of all examples;
        ``<task>/<metric>`` has that of one task, ``macro/<metric>`` the mean over tasks.
    RAISES (DialogError): If the model or the data cannot be used.
    """
    experiment = Experiment.from_model(path, overrides, code)
    with experiment.working():
        teacher = experiment.evaluation_split(split)
        scores: Dict[str, float] = experiment.runner.evaluate(experiment, teacher)
        return scores
