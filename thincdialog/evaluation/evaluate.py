"""``evaluate``: score a saved model on one split of its data."""

from typing import Dict

from ..training.experiment import CodeLike, Experiment, Overrides, PathLike


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
