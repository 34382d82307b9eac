"""A table of training runs with their scores and the settings in which they differ."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from ..config.diff import PLACES
from ..config.given import read_config
from ..config.source import Source
from ..config.values import parse_value
from ..config.variables import fill_variables
from ..errors import DataError, ModelError
from ..files.plain_file import open_plain
from ..files.saved_model import read_meta
from ..metrics import higher_is_better
from .find_runs import Run, Runs, find_runs
from .run_log import is_running
from .scores_file import read_scores

FINISHED, RUNNING, UNFINISHED = "finished", "running", "not finished"
# Settings for the output of a run, which do not affect its scores.
LEFT_OUT = ("training.logger.",)


@dataclass
class RunResult:
    """Hold the settings and results of a training run; unknown values are None.

    name (str): A short name.
    path (str): The run's folder, or the file of its rows.
    state (str): "finished", "running", or "not finished": interrupted, failed or killed.
    task (Optional[str]): Names of the run's tasks.
    score_name (Optional[str]): Name of the metric that the run optimised.
    higher_is_better (Optional[bool]): Whether higher values of the metric are better, according to
        the run's config or else to the metric's name.
    score (Optional[float]): Best score so far on the dev data.
    best_step (Optional[int]): Step of the best score.
    step (Optional[int]): Number of steps so far.
    epochs (Optional[float]): Number of epochs so far.
    dev (Optional[float]): Score of the best model on the dev data, for finished runs only.
    test (Optional[float]): Score of the best model on the test data, for finished runs only.
    seconds (Optional[float]): Seconds of training, without evaluations.
    n_parameters (Optional[int]): Number of weights.
    stopped_because (Optional[str]): Reason why training ended.
    scores (Dict[str, Dict[str, float]]): Split to metric to value.
    settings (Dict[str, Optional[str]]): "section.key" to value, for the settings in which the runs
        differ. Values are text as in the config, with variables filled in; None if this run does
        not have the setting.
    config (Dict[str, str]): "section.key" to value, for all settings of the run, if known.
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
        """Return everything except ``config`` in one flat dict for a table, with keys such as
        "dev/hits@1" and "training.max_steps". Strings from the config have no quotes."""
        known = asdict(self)
        scores, settings = known.pop("scores"), known.pop("settings")
        del known["config"]
        for split, report in scores.items():
            known.update({f"{split}/{name}": value for name, value in report.items()})
        plain = {name: raw if raw is None else plain_text(raw) for name, raw in settings.items()}
        return {**known, **plain}


def plain_text(raw: str) -> str:
    """Return a setting's text from the config on one line, without the quotes of a string."""
    value = parse_value(raw)
    return " ".join((value if isinstance(value, str) else raw).split())


def results(runs: Runs) -> List[RunResult]:
    """Return the results of training runs, the best first.

    runs (Runs): Output folders of runs, folders that contain such folders, or files of rows.
    RETURNS (List[RunResult]): Results sorted by metric, then by score; runs without a score are
        last.
    RAISES (DataError): If a path has no run.
    """
    found = find_runs(runs)
    both = [_settings(run.path) for run in found]
    written, configs = ([each[place] for each in both] for place in (0, 1))
    names = dict.fromkeys(name for config in configs for name in config)
    differing = [
        name
        for name in names
        # A reference to another setting gets no column, because the other setting has one.
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
        result.higher_is_better = higher_is_better(result.score_name or "", direction=direction)
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
        for name in ("model-best", "model-last"):  # Runs without a log have only these files.
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
    """Return all settings of a run's config as written, and with variables filled in; empty if the
    config is not known."""
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
    """Return the text of a setting's value, as in a config."""
    value: Any = filled if "$" in raw else None
    for key in name.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    # A variable whose value is null is shown by its name.
    return raw if value is None else json.dumps(value, ensure_ascii=False)
