"""Find training runs on the disk, finished or not."""

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Union

from ..errors import DataError, closest
from ..files.plain_file import real_path
from ..loggers.row_file import count_lost, is_number
from .run_log import LOG, read_log
from .scores_file import SCORES

# A folder that contains any of these files is the folder of a run.
SIGNS = (LOG, SCORES, "model-best/meta.json", "model-last/meta.json")
MAX_DEPTH = 3
# Keys of a row whose values must be numbers, and the types of other keys.
_NUMBERS = ("step", "epoch", "examples", "seconds", "score")
_KINDS = {"score_name": str, "scores": dict}


# One path, or several: output folders of runs, folders that contain such folders, or files of rows
# from the JSONL logger (which may hold several runs).
Runs = Union[str, Path, Sequence[Union[str, Path]]]


class Run(NamedTuple):
    """Describe a training run.

    name (str): The shortest end of its path that differs from those of the other runs.
    path (Path): The run's folder, or a file of rows.
    rows (List[Dict[str, Any]]): One row for each evaluation so far.
    """

    name: str
    path: Path
    rows: List[Dict[str, Any]]


def find_runs(paths: Runs) -> List[Run]:
    """Find the runs in some folders.

    paths (Runs): If there are several paths (``output/*``), files of other kinds are skipped.
    RETURNS (List[Run]): The runs in the order of the paths, each only once.
    RAISES (DataError): If a path has no run.
    """
    known: Dict[Path, Path] = {}
    for path in map(Path, [paths] if isinstance(paths, (str, Path)) else paths):
        try:
            for run in _runs_in(path):
                known.setdefault(real_path(run), run)
        except OSError as error:
            raise _unreadable(path, error) from None
    runs = []
    for name, path in zip(_names(list(known)), known.values()):
        rows = _read(path)
        if path.is_file() and not rows and path.stat().st_size:
            if len(known) > 1 and path.suffix != ".jsonl":
                continue  # A picture, or sweep.json.
            raise DataError(path, "has no rows of a training run. Give the log.jsonl of a run.")
        parts = _split(rows) if path.is_file() else [rows]
        names = [f"{name}#{i}" for i in range(1, len(parts) + 1)] if parts[1:] else [name]
        runs += [Run(own, path, part) for own, part in zip(names, parts)]
    return runs


def lost_rows(paths: Runs) -> List[str]:
    """Return a line for each run that has unreadable rows, with their number.

    paths (Runs): As for ``find_runs``.
    """
    files = [run.path / LOG if run.path.is_dir() else run.path for run in find_runs(paths)]
    counts = {path: count_lost(path) for path in files if path.is_file()}
    return [
        f"{path}  {n} of its lines cannot be read (a crash, or a full disk?) and are left out"
        for path, n in counts.items()
        if n
    ]


def _runs_in(path: Path) -> List[Path]:
    """Return the folders of all runs at a path."""
    if path.is_file():
        return [path.parent if path.name == LOG and is_run(path.parent) else path]
    if not path.is_dir():
        names = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        hint = " Give the output folder of a training run."
        if near := closest(path.name, names):
            hint = f" Did you mean {path.parent / near}?"
        raise DataError(path, f"does not exist.{hint}")
    if is_run(path):
        return [path]
    if (path / "meta.json").is_file() and is_run(path.parent):  # model-best
        return [path.parent]
    runs = _below(path, MAX_DEPTH)
    if not runs:
        raise DataError(
            path, f"is not a training run and contains none: there is no {LOG}. Give the "
            "--output folder of a training run."
        )  # fmt: skip
    return runs


def is_run(folder: Path) -> bool:
    """Return whether a folder is the folder of a training run."""
    return any((folder / sign).is_file() for sign in SIGNS)


def _below(folder: Path, depth: int) -> List[Path]:
    if is_run(folder):
        return [folder]
    if not depth:
        return []
    inside = [path for path in sorted(folder.iterdir()) if path.is_dir()]
    return [run for path in inside if path.name[0] != "." for run in _below(path, depth - 1)]


def _read(path: Path) -> List[Dict[str, Any]]:
    try:
        rows = read_log(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    # The file may be from another program, or damaged.
    for row in rows:
        for key, value in list(row.items()):
            is_good = is_number(value) if key in _NUMBERS else True
            if not is_good or not isinstance(value, _KINDS.get(key, object)):
                del row[key]
    return [row for row in rows if "step" in row]


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(error.filename or path, f"cannot be read: {error.strerror}.")


def _split(rows: List[Dict[str, Any]]) -> List[List[Dict[str, Any]]]:
    """Split the rows of a file into runs: a run begins where ``step`` does not increase."""
    parts: List[List[Dict[str, Any]]] = [[]]
    for row in rows:
        if parts[-1] and row["step"] <= parts[-1][-1]["step"]:
            parts.append([])
        parts[-1].append(row)
    return parts


def _names(paths: List[Path]) -> List[str]:
    """Return the last parts of each path, as many as needed to distinguish the paths."""
    parts = [path.parts for path in paths]
    length = 1
    while len({part[-length:] for part in parts}) < len(parts):
        length += 1
    return ["/".join(part[-length:]) for part in parts]
