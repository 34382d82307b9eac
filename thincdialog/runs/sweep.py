"""Train with many settings, one run after the other in one process. Each run is reproducible: it
has bit for bit the same result as when it is trained alone. (If a run kills the process, the sweep
ends too; repeat the call to resume it.)
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, TextIO, Union

from ..config import ConfigLike, check_config, load_code, load_config
from ..contract import reason
from ..errors import ConfigError, OutputError, Problem
from ..files.json_file import read_json, write_json
from ..files.plain_file import not_plain
from ..files.whole_file import whole_file, writing
from ..training.experiment import CodeLike, Experiment, Overrides, PathLike
from .changes import SAME_OUTCOME, changes_of, flat, is_among
from .run_table import RunResult, results
from .scores_file import read_scores
from .sweep_values import Choices, Range, grid, read_choices, run_name, sample
from .train import train

STATE, CONFIG = "sweep.json", "config.cfg"
REMEDY = 'Write {"runs": {}} into it to continue with the existing runs.'
FINISHED, FAILED, BEGUN, WAITING = "finished", "failed", "begun", "waiting"
# If there are more combinations, only enough of them are checked to check every value once.
MAX_CHECKED = 64


@dataclass
class SweepRun:
    """Describe a run of a sweep.

    name (str): Name of the run's folder, in the folder of the sweep.
    overrides (Dict[str, Any]): The run's own settings, "section.key" to value.
    state (str): "waiting", "begun", "finished" or "failed".
    error (Optional[str]): Reason why the run failed.
    """

    name: str
    overrides: Dict[str, Any]
    state: str = WAITING
    error: Optional[str] = None


@dataclass
class Sweep:
    """Hold the runs and results of ``sweep``.

    output (Path): Folder that contains the runs.
    runs (List[SweepRun]): Runs in the order of training.
    results (List[RunResult]): Results of the finished runs, the best first; in the order of
        training if there are no dev scores.
    """

    output: Path
    runs: List[SweepRun]
    results: List[RunResult] = field(default_factory=list)

    @property
    def best(self) -> Optional[SweepRun]:
        """The run with the best score on the dev data; None if no run has a score."""
        if not self.results or self.results[0].score is None:
            return None
        return next(run for run in self.runs if run.name == Path(self.results[0].path).name)


def sweep(
    config: ConfigLike,
    over: Mapping[str, Choices],
    output: PathLike,
    *,
    random: int = 0,
    seed: int = 0,
    overrides: Overrides = None,
    retry: bool = False,
    code: CodeLike = None,
    stderr: Optional[TextIO] = None,
) -> Sweep:
    """Train once for each combination of some settings, and compare the scores on the dev data.

    If you repeat the call, it trains only the runs that are not finished; an interrupted run
    resumes from its newest checkpoint. If a run fails, its error is saved, and the next run begins.

    config (ConfigLike): Path of a config, its text, a Config, or a dict of its sections.
    over (Mapping[str, Choices]): "section.key" to a list of values; or, with ``random``,
        to a range: "log:1e-4..1e-1" (uniform in the logarithm), "uniform:0..0.5" or
        "int:1..8", bounds included.
    output (Union[str, Path]): Folder that will contain a folder for each run.
    random (int): Number of combinations to draw; 0 for all of them.
    seed (int): Seed of the draws.
    overrides (Optional[Mapping[str, Any]]): Config settings to change in all runs.
    retry (bool): Whether to train failed runs again.
    code (CodeLike): Python file or files to import first.
    stderr (Optional[TextIO]): Stream for the progress of all runs; sys.stderr if None.
    RETURNS (Sweep): All runs and their results.
    RAISES (DialogError): Before any training and writing, if a combination makes an invalid config,
        if data is missing, or if the folder contains something else.
    """
    load_code(code)
    stream = stderr or sys.stderr
    common = dict(overrides or {})
    choices = read_choices(over, bool(random))
    combinations = sample(choices, random, seed) if random else grid(choices)  # type: ignore
    _check(config, common, choices, combinations)
    folder = Path(output)
    names = list(choices)
    runs = [SweepRun(run_name(chosen, names), dict(chosen)) for chosen in combinations]
    state = _SweepState(folder)
    state.take_up(runs, retry)
    _check_trained(config, common, folder, runs)
    for number, run in enumerate(runs, 1):
        if run.state in (FINISHED, FAILED):
            continue
        stream.write(f"\nRun {number} of {len(runs)}: {run.name}\n")
        run.state, run.error = BEGUN, None
        state.write(runs)
        place = folder / run.name
        # With force, a run that was stopped before its first checkpoint starts from scratch.
        is_begun = place.is_dir() and any(place.iterdir())
        try:
            train(
                config,
                output=place,
                overrides={**common, **run.overrides},
                resume=is_begun,
                force=is_begun,
                code=code,  # Imported in this process already, but worker processes import it too.
                stdout=stream,
                stderr=stream,
            )
            run.state = FINISHED
        except Exception as error:  # After any error, the other runs may still succeed.
            run.state, run.error = FAILED, reason(error)
            stream.write(f"Failed: {run.error}\n")
        state.write(runs)
    found = Sweep(folder, runs)
    finished = [str(folder / run.name) for run in runs if run.state == FINISHED]
    if finished:
        found.results = results(finished)
    return found


def _check(
    config: ConfigLike,
    common: Dict[str, Any],
    choices: Mapping[str, Union[Range, List]],
    combinations: List[Dict[str, Any]],
) -> None:
    """Check the config with the combinations, before anything runs.

    RAISES (ConfigError): If there are problems; lists all of them.
    RAISES (DataError): If data is missing.
    """
    problems = [
        Problem(f"--over {name}", f"runs with different {name} cannot be compared", "leave it out")
        for name in choices
        if name in ("training.score", "training.score_direction")
    ]
    for chosen in _combinations_to_check(choices, combinations):
        for problem in check_config(config, {**common, **chosen}):
            name = problem.where.removeprefix("--")
            where = f"--over {name}" if name in chosen else problem.where
            problems.append(problem._replace(where=where))
    if problems:
        is_path = isinstance(config, (str, Path)) and "\n" not in str(config)
        raise ConfigError(list(dict.fromkeys(problems)), str(config) if is_path else "config")
    Experiment.from_config(config, {**common, **combinations[0]}).check_data()


def _combinations_to_check(
    choices: Mapping[str, Union[Range, List]], combinations: List[Dict[str, Any]]
) -> List[Dict[str, Any]]:
    are_few = len(combinations) <= MAX_CHECKED
    values = {
        name: known.bounds() if isinstance(known, Range) else [] if are_few else known
        for name, known in choices.items()
    }
    varied = [{**combinations[0], name: each} for name, some in values.items() for each in some]
    return varied + combinations if are_few else varied


def _check_trained(
    config: ConfigLike, common: Dict[str, Any], folder: Path, runs: List[SweepRun]
) -> None:
    """Check that existing runs were trained with this config.

    RAISES (OutputError): If a run was trained with other settings.
    """
    for run in runs:
        path = folder / run.name / CONFIG
        if run.state not in (FINISHED, BEGUN) or not path.is_file():
            continue
        checked = load_config(config, {**common, **run.overrides})
        changes = changes_of(flat(load_config(path).config), flat(checked.config))
        others = [change for change in changes if not is_among(change.name, SAME_OUTCOME)]
        if others:
            shown = ", ".join(f"{each.name} (was {each.old}, is {each.new})" for each in others[:4])
            more = f" and {len(others) - 4} more" if len(others) > 4 else ""
            raise OutputError(
                f"{path}  the run was trained with other settings: {shown}{more}. "
                "Give this sweep another folder with --output."
            )


class _SweepState:
    """Manage ``sweep.json``, which holds the runs and their states."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.others: Dict[str, Any] = {}  # Runs of other calls in the same folder.
        path = folder / STATE
        reason = not_plain(path)
        if reason:
            raise OutputError(f"{path}  cannot be used: {reason}. Remove it.")
        if path.is_file():
            self.others = read_json(path, REMEDY).get("runs", {})
            runs = self.others.values() if isinstance(self.others, dict) else [None]
            if not all(isinstance(run, dict) for run in runs):
                raise OutputError(f"{path}  is damaged: it holds no runs. {REMEDY}")
        elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise OutputError(
                f"{folder}  is not the folder of a sweep. Choose another folder with --output."
            )

    def take_up(self, runs: List[SweepRun], retry: bool) -> None:
        """Set the states of runs from an earlier call."""
        for run in runs:
            known = self.others.get(run.name, {})
            run.state, run.error = known.get("state", WAITING), known.get("error")
            if run.state == FINISHED and not read_scores(self.folder / run.name):
                run.state = WAITING  # The run's folder was deleted.
            if run.state == FAILED and retry:
                run.state, run.error = WAITING, None

    def write(self, runs: List[SweepRun]) -> None:
        """Write the states to disk.

        RAISES (OutputError): If the file cannot be written.
        """
        ours = {
            run.name: {"overrides": run.overrides, "state": run.state, "error": run.error}
            for run in runs
        }
        path = self.folder / STATE
        with writing(path, verb="cannot be"):
            self.folder.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as temporary:
                write_json(temporary, {"format": 1, "runs": {**self.others, **ours}})
