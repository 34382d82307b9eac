"""Checkpoints: all that a run needs to go on as if it had never stopped.

    checkpoint-1200/
        checkpoint.json   size and SHA-256 of every other file
        state.json        the run: position, best score, world, config, ...
        weights.npy ...   the agent, as in a saved model; these weights are not averaged
        optimizer/*.npy   its moments and averages
        best.npy          the weights of the best model so far

JSON and NumPy arrays only: nothing here is unpickled.
"""

import json
import re
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

from ..errors import ModelError
from ..files.checksums import checksums, find_damage
from ..files.held import mend
from ..files.json_text import parse_json
from ..files.plain_file import read_plain
from ..files.whole_folder import remove, written_whole

# 3: checksums of whole files, of folders and of the agent's files; counts of what was left out.
# No run resumes from an earlier format.
FORMAT = 3
MANIFEST, STATE, ARRAYS = "checkpoint.json", "state.json", "optimizer"
OTHER_VERSION = "was written by"
N_KEPT = 2
ANEW = "To start again, choose another --output, or use --force without --resume."
_NAME = re.compile(r"checkpoint-(\d+)")


class Checkpoints:
    """Those in a run's folder, the newest two.

    folder (Path): The run's folder.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def steps(self) -> List[int]:
        """Of all that are there, whole or not, ascending."""
        ours = [path.name for path in self._named() if _is_ours(path)]
        return sorted(int(name.rpartition("-")[2]) for name in ours)

    def foreign(self) -> Optional[Path]:
        """What is named as a checkpoint and is none, such as that of another program."""
        return next((path for path in self._named() if not _is_ours(path)), None)

    def _named(self) -> List[Path]:
        paths = self.folder.iterdir() if self.folder.is_dir() else ()
        return [path for path in paths if _NAME.fullmatch(path.name)]

    def at(self, step: int) -> Path:
        """Where that of a step is."""
        return self.folder / f"checkpoint-{step}"

    def newest(self, note: Callable[[str], None]) -> Optional[Path]:
        """The newest one that is whole; None if there is none at all.

        note (Callable): Called with a line for each that is newer and damaged.
        RAISES (ModelError): If all are damaged, or one is of another version.
        """
        reasons: List[str] = []
        for step in reversed(self.steps()):
            folder = self.at(step)
            reason = damage(folder)
            if not reason:
                for line in reasons:
                    note(f"{line} {folder} is whole.")
                return folder
            if reason.startswith(OTHER_VERSION):
                raise ModelError(
                    f"{folder}  {reason}: begin anew in another --output, or with --force in "
                    "place of --resume."
                )
            reasons.append(f"{folder} is damaged: {reason}.")
        if reasons:
            raise ModelError(
                f"{self.folder}  has no whole checkpoint to resume from. {' '.join(reasons)} {ANEW}"
            )
        return None

    @contextmanager
    def writing(self, step: int) -> Iterator[Path]:
        """A checkpoint to be filled, written whole or not at all; all but the last two go.

        YIELDS (Path): The folder to write into.
        RAISES (OutputError): If something cannot be written; the others stay.
        """
        with written_whole(self.at(step)) as folder:
            yield folder
            paths = sorted(path for path in folder.rglob("*") if path.is_file())
            manifest = {"format": FORMAT, "step": step, "files": checksums(folder, paths)}
            (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf8")
        earlier = [other for other in self.steps() if other < step]
        kept = {step, *earlier[1 - N_KEPT :]}
        for other in self.steps():
            # A later one is of a future that this run did not take: it was damaged.
            if other not in kept:
                remove(self.at(other))

    def remove(self) -> None:
        """Take all of them away, for another run to begin in the folder."""
        for step in self.steps():
            remove(self.at(step))

    def mend(self, *names: str) -> None:
        """Undo what a process that was killed left half done.

        names (str): Of other folders and files that are written whole.
        """
        if self.folder.is_dir():
            mend(self.folder, "|".join([_NAME.pattern, *map(re.escape, names)]), is_ours=True)


def _is_ours(path: Path) -> bool:
    """Whether something is left of a checkpoint in a folder, or it is empty."""
    if not path.is_dir():
        return False
    names = {inner.name for inner in path.iterdir()}
    return not names or bool(names & {MANIFEST, STATE, ARRAYS})


def damage(folder: Path) -> str:
    """What is wrong with a checkpoint, or "" if it is whole.

    folder (Path): Named by its step.
    """
    try:
        manifest: Dict[str, Any] = parse_json(read_plain(folder / MANIFEST))
        files = dict(manifest["files"])
        if manifest["format"] != FORMAT:
            age = "an earlier" if manifest["format"] < FORMAT else "a later"
            return f"{OTHER_VERSION} {age} version of thincdialog"
        if folder.name != f"checkpoint-{manifest['step']}" or not files:
            return f"{MANIFEST} is not its own"
        return find_damage(folder, files)
    except OSError as error:
        return f"{MANIFEST} cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{MANIFEST} is not readable"
