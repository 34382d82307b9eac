"""Checkpoints: the state that a run needs to resume as if it had never been interrupted.

    checkpoint-1200/
        checkpoint.json   size and SHA-256 of every other file
        state.json        state of the run: position, best score, world, config, ...
        weights.npy ...   the agent, as in a saved model; these weights are not averaged
        optimizer/*.npy   the optimizer's moments and averages
        best.npy          the weights of the best model so far

All files are JSON and NumPy arrays; nothing is unpickled.
"""

import json
import re
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

from ..errors import ModelError
from ..files.fingerprint import checksums, find_damage
from ..files.held import repair
from ..files.json_text import parse_json
from ..files.plain_file import read_plain
from ..files.whole_file import remove, written_whole

# Version 4 divides streams among processes and asynchronous workers in another way than version 3.
# A run cannot resume from an earlier version.
FORMAT = 4
MANIFEST, STATE, ARRAYS = "checkpoint.json", "state.json", "optimizer"
OTHER_VERSION = "was written by"
N_KEPT = 2
RESTART = "To start again, choose another --output, or use --force without --resume."
_NAME = re.compile(r"checkpoint-(\d+)")


class Checkpoints:
    """Manage the checkpoints in a run's folder, of which the newest two are kept.

    folder (Path): The run's folder.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def steps(self) -> List[int]:
        """Return the steps of all checkpoints, complete or not, in ascending order."""
        ours = [path.name for path in self._named() if _is_ours(path)]
        return sorted(int(name.rpartition("-")[2]) for name in ours)

    def foreign(self) -> Optional[Path]:
        """Return a path that is named like a checkpoint but is not one, such as a checkpoint of
        another program; None if there is none."""
        return next((path for path in self._named() if not _is_ours(path)), None)

    def _named(self) -> List[Path]:
        paths = self.folder.iterdir() if self.folder.is_dir() else ()
        return [path for path in paths if _NAME.fullmatch(path.name)]

    def at(self, step: int) -> Path:
        """Return the folder of the checkpoint of a step."""
        return self.folder / f"checkpoint-{step}"

    def newest(self, note: Callable[[str], None]) -> Optional[Path]:
        """Return the newest complete checkpoint; None if there are no checkpoints.

        note (Callable): Called with a line for each newer checkpoint that is damaged.
        RAISES (ModelError): If all checkpoints are damaged, or if one was written by another
            version.
        """
        reasons: List[str] = []
        for step in reversed(self.steps()):
            folder = self.at(step)
            reason = damage(folder)
            if not reason:
                for line in reasons:
                    note(f"{line} Using {folder}, which is intact.")
                return folder
            if reason.startswith(OTHER_VERSION):
                raise ModelError(
                    f"{folder}  {reason}: start from scratch in another --output, or with --force "
                    "instead of --resume."
                )
            reasons.append(f"{folder} is damaged: {reason}.")
        if reasons:
            found = f"{self.folder}  has no intact checkpoint to resume from."
            raise ModelError(f"{found} {' '.join(reasons)} {RESTART}")
        return None

    @contextmanager
    def writing(self, step: int) -> Iterator[Path]:
        """Write a checkpoint, completely or not at all, and delete all but the last two.

        YIELDS (Path): The folder to write into.
        RAISES (OutputError): If something cannot be written; the other checkpoints are kept.
        """
        with written_whole(self.at(step)) as folder:
            yield folder
            paths = sorted(path for path in folder.rglob("*") if path.is_file())
            manifest = {"format": FORMAT, "step": step, "files": checksums(folder, paths)}
            (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf8")
        earlier = [other for other in self.steps() if other < step]
        kept = {step, *earlier[1 - N_KEPT :]}
        for other in self.steps():
            # A later checkpoint was damaged, so the run resumed from an earlier one.
            if other not in kept:
                remove(self.at(other))

    def remove(self) -> None:
        """Delete all checkpoints, so that another run can begin in the folder."""
        for step in self.steps():
            remove(self.at(step))

    def repair(self, *names: str) -> None:
        """Undo unfinished changes of a process that was killed.

        names (str): Names of other folders and files that are written completely or not at all.
        """
        if self.folder.is_dir():
            repair(self.folder, "|".join([_NAME.pattern, *map(re.escape, names)]), is_ours=True)


def _is_ours(path: Path) -> bool:
    """Return whether a folder is empty or contains at least a part of a checkpoint."""
    if not path.is_dir():
        return False
    names = {inner.name for inner in path.iterdir()}
    return not names or bool(names & {MANIFEST, STATE, ARRAYS})


def damage(folder: Path) -> str:
    """Describe the damage of a checkpoint; "" if it is complete.

    folder (Path): The checkpoint's folder, whose name contains its step.
    """
    try:
        manifest: Dict[str, Any] = parse_json(read_plain(folder / MANIFEST))
        files = dict(manifest["files"])
        if manifest["format"] != FORMAT:
            age = "an earlier" if manifest["format"] < FORMAT else "a later"
            return f"{OTHER_VERSION} {age} version of thincdialog"
        if folder.name != f"checkpoint-{manifest['step']}" or not files:
            return f"{MANIFEST} belongs to another checkpoint"
        return find_damage(folder, files)
    except OSError as error:
        return f"{MANIFEST} cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{MANIFEST} is not readable"
