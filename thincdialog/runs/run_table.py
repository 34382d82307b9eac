"""Many training runs in a table: what they came to, and what sets them apart."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from ..config.diff import PLACES
from ..config.given import read_config
from ..config.source import Source
from ..config.values import parse_value
from ..config.variables import fill_variables
from ..errors import DataError, ModelError
from ..files.plain_file import open_plain
from ..files.saved_model import read_meta
from ..metrics import higher_is_better
from .find_runs import Run, find_runs
from .run_log import is_running
from .scores_file import read_scores

FINISHED, RUNNING, UNFINISHED = "finished", "running", "not finished"
# What a run writes, and where, says nothing about its scores.
LEFT_OUT = ("training.logger.",)


@dataclass
class RunResult:
    """What is known of a training run; None where it is not.

    name (str): What to call it by.
    path (str): Its folder, or the file of its rows.
    state (str): "finished", "running", or "not finished": interrupted, failed or killed.
    task (Optional[str]): Names of its tasks.
    score_name (Optional[str]): The metric that it optimised.
    higher_is_better (Optional[bool]): Of the metric, by the run's config or else by its name.
    score (Optional[float]): The best so far, on dev.
    best_step (Optional[int]): Where that was.
    step (Optional[int]): Steps so far.
    epochs (Optional[float]): Epochs so far.
    dev (Optional[float]): The metric of the model that was kept; of a finished run only.
    test (Optional[float]): The same on the test data.
    seconds (Optional[float]): Of training, evaluations left out.
    n_parameters (Optional[int]): Number of weights.
    stopped_because (Optional[str]): Why it ended.
    scores (Dict[str, Dict[str, float]]): Split to metric to value.
    settings (Dict[str, Optional[str]]): "section.key" to its value, as the config has it but
        with variables filled in, of the settings in which the runs differ; None if this one
        does not have it.
    config (Dict[str, str]): The same of all its settings, if they are known.
    """

    name: str
    path: str
    state: str
    task: Optional[str] = None
    score_name: Optional[str] = None
    higher_is_better: Optional[bool] = None
    score: Optional[float] = None
    best_step: Optional[int] = None
    step: Optional[int] = None
    epochs: Optional[float] = None
    dev: Optional[float] = None
    test: Optional[float] = None
    seconds: Optional[float] = None
    n_parameters: Optional[int] = None
    stopped_because: Optional[str] = None
    scores: Dict[str, Dict[str, float]] = field(default_factory=dict)
    settings: Dict[str, Optional[str]] = field(default_factory=dict)
    config: Dict[str, str] = field(default_factory=dict)

    def flat(self) -> Dict[str, Any]:
        """All of it but ``config`` at one level, for a table: "dev/hits@1",
        "training.max_steps"; strings of the config without quotes."""
        known = asdict(self)
        scores, settings = known.pop("scores"), known.pop("settings")
        del known["config"]
        for split, report in scores.items():
            known.update({f"{split}/{name}": value for name, value in report.items()})
        plain = {name: raw if raw is None else plain_text(raw) for name, raw in settings.items()}
        return {**known, **plain}


def plain_text(raw: str) -> str:
    """A setting as the config has it, without the quotes of a string, on one line."""
    value = parse_value(raw)
    return " ".join((value if isinstance(value, str) else raw).split())


def results(runs: Sequence[Union[str, Path]]) -> List[RunResult]:
    """What training runs came to, the best first.

    runs (Sequence[Union[str, Path]]): Output folders of runs, folders of such, files of rows.
    RETURNS (List[RunResult]): By metric, then by score; runs that have none yet stand last.
    RAISES (DataError): If there is no run where one should be.
    """
    found = find_runs(runs)
    both = [_settings(run.path) for run in found]
    written, configs = ([each[place] for each in both] for place in (0, 1))
    names = dict.fromkeys(name for config in configs for name in config)
    differing = [
        name
        for name in names
        # What refers to another setting differs as that one does, which has a column.
        if all(
            len({config.get(name) for config in each if config}) > 1 for each in (written, configs)
        )
        and not name.startswith(LEFT_OUT)
    ]
    table = []
    for run, config in zip(found, configs):
        result = _result(run)
        tasks = [name.split(".")[1] for name in config if name.startswith("tasks.")]
        result.task = ", ".join(dict.fromkeys(tasks)) or result.task
        direction = config.get("training.score_direction", "").strip('"')
        better = {"max": True, "min": False}.get(direction)
        known = higher_is_better(result.score_name or "")
        result.higher_is_better = known if better is None else better
        result.config = config
        result.settings = {name: config.get(name) for name in differing}
        table.append(result)
    metrics = [result.score_name for result in table if result.score is not None]
    return sorted(table, key=lambda result: _rank(result, list(dict.fromkeys(metrics))))


def _rank(result: RunResult, metrics: List[Optional[str]]) -> Any:
    if result.score is None:
        return len(metrics), 0.0
    sign = 1 if result.higher_is_better is False else -1
    return metrics.index(result.score_name), sign * result.score


def _result(run: Run) -> RunResult:
    result = RunResult(run.name, str(run.path), UNFINISHED)
    scores: Dict[str, Any] = {}
    if run.path.is_dir():
        scores = read_scores(run.path)
        result.state = RUNNING if is_running(run.path) else FINISHED if scores else UNFINISHED
        for name in ("model-best", "model-last"):  # Runs without a log have only these.
            with suppress(ModelError):
                meta = read_meta(run.path / name)
                result.task = result.task or meta.get("task")
                result.best_step = result.best_step or meta.get("step")
                result.step, result.epochs = meta.get("step"), meta.get("epoch")
    if run.rows:
        last = run.rows[-1]
        best = next((row for row in reversed(run.rows) if row.get("is_best")), last)
        result.score_name, result.score = last.get("score_name"), best.get("score")
        result.best_step, result.step = best["step"], last["step"]
        result.epochs, result.seconds = last.get("epoch"), last.get("seconds")
    if scores:
        name = result.score_name = scores["score_name"]
        result.scores = scores["scores"]
        result.dev = result.scores.get("dev", {}).get(name)
        result.test = result.scores.get("test", {}).get(name)
        result.score = result.dev if result.score is None else result.score
        result.best_step, result.seconds = scores["best_step"], scores["seconds"]
        result.n_parameters = scores["n_parameters"]
        result.stopped_because = scores["stopped_because"]
    return result


def _settings(path: Path) -> Tuple[Dict[str, str], Dict[str, str]]:
    """Every setting of a run's config as it is written, and the same with its variables filled
    in; none if they are not known."""
    for place in PLACES if path.is_dir() else ():
        file = path / place
        if file.is_file():
            try:
                open_plain(file).close()
            except OSError as error:
                raise DataError(file, f"cannot be read: {error.strerror}.") from None
            given = read_config(file)
            source = given.source or Source("")
            written = {
                f"{section.name}.{key}": entry.raw
                for section in source.sections.values()
                for key, entry in section.entries.items()
            }
            filled = fill_variables(given, given.data)
            return written, {name: _value(name, raw, filled) for name, raw in written.items()}
    return {}, {}


def _value(name: str, raw: str, filled: Dict[str, Any]) -> str:
    """What a setting says, as a config would have it."""
    value: Any = filled if "$" in raw else None
    for key in name.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    # A variable that leads to null is told by its name.
    return raw if value is None else json.dumps(value, ensure_ascii=False)
