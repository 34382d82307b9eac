"""Saves what a run learns into its folder, and takes it back."""

import filecmp
import json
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Mapping, Optional

import numpy
from thinc.api import get_array_module, to_numpy

from ..config import told_apart, write_config
from ..contract import told_of_code
from ..errors import DialogError, ModelError, TrainingError
from ..files.array_file import read_array, write_array
from ..files.json_file import read_json
from ..files.saved_model import BEST, LAST, find_changes, read_meta
from ..files.whole_file import whole_file, writing
from ..optimizers.state import has_state, optimizer_state, restore_optimizer
from ..pretrained.saved_encoder import check_encoders, write_encoders
from ..training.experiment import Experiment
from ..training.keeper import Keeper
from ..training.progress import Position
from .changes import Prints, check_config, check_data, check_ops, fingerprints
from .checkpoints import ANEW, ARRAYS, STATE, Checkpoints
from .model_folder import save_model
from .run_place import CONFIG, RunPlace

WEIGHTS = "weights.npy"
# In a checkpoint: those of the best model.
BEST_WEIGHTS = "best.npy"


class RunKeeper(Keeper):
    """Keeps models and checkpoints in a run's folder.

    experiment (Experiment): Whose agent and optimizer are saved; of an agent without weights
        there are no checkpoints, nor with an optimizer whose state cannot be told.
    folder (Optional[Path]): The run's; None to keep the best weights alone, in memory.
    """

    def __init__(self, experiment: Experiment, folder: Optional[Path]):
        self.experiment, self.place = experiment, RunPlace(folder)
        self.checked, self.tasks = experiment.checked, experiment.tasks
        self.agent, self.optimizer = experiment.agent, experiment.optimizer
        self._has_checkpoints = self.agent.learns and has_state(self.optimizer)
        self._is_evaluated = self._has_learnt = False
        self.saved = ""  # Where the weights lie that were saved last.
        self.best_weights: Any = None
        self._best: Optional[Dict[str, Any]] = None  # What is known of them.
        self._fingerprints: Optional[Prints] = None

    @property
    def checkpoints(self) -> Optional[Checkpoints]:
        """Those of the run; None if it has none."""
        path = self.place.path
        return Checkpoints(path) if path is not None and self._has_checkpoints else None

    # --- keeping --------------------------------------------------------------------

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """A stretch in which the folder is ours alone. If the run ends in it before it is
        sure of its place, what it has written goes, and an old run stays; unless a signal
        ended it, and it has learnt something.

        RAISES (OutputError): If what a killed run left half done cannot be mended.
        """
        self.place.mend()
        try:
            yield
        except KeyboardInterrupt:
            if self._has_learnt:
                self.place.take_over()
            raise
        finally:
            if not self.place.is_sure:
                self.saved = self.newest = ""
            self.place.drop()

    def begin(self, anew: bool) -> None:
        """The run begins, or goes on: its config stands where it is written from now on.

        anew (bool): Whether it begins; a run that is there stays until this one is sure.
        RAISES (OutputError): If the config cannot be written.
        """
        if anew:
            self.place.begin_anew()
        if self.place.path is None:
            return
        path = self.place.path / CONFIG
        remedy = "Free some space or choose another folder with --output."
        with writing(path, remedy), whole_file(path) as beside:
            beside.write_text(write_config(self.checked.config), encoding="utf8")

    def evaluated(self, position: Position, report: Mapping[str, float], is_best: bool) -> None:
        """Save the weights in place (averaged, if any) as model-last, maybe as model-best."""
        meta = self._meta(position, report)
        if is_best:
            if self.agent.learns:
                self.best_weights = self.experiment.learner.weights.copy()
            self._best = meta
            self._save_model(BEST, meta)
        self._save_model(LAST, meta)
        self._is_evaluated = True
        self._has_learnt = position.step > 0

    def calibrated(self) -> None:
        """Save model-best once more: its weights are in place, and the agent has a temperature."""
        if self._best is not None:
            self._save_model(BEST, self._best)

    def left(self, position: Position) -> None:
        """Save model-last without a report."""
        self._save_model(LAST, self._meta(position, {}))
        self._has_learnt = position.step > 0

    def _meta(self, position: Position, report: Mapping[str, float]) -> Dict[str, Any]:
        # Folders say something about one machine only.
        code = told_apart(self.experiment.code)
        return {
            "agent": self.checked.interpolated["agent"]["@agents"],
            "task": ", ".join(self.tasks),
            "ops": self.experiment.ops_name,
            **({"auto": self.experiment.chosen} if self.experiment.chosen else {}),
            "step": position.step,
            "epoch": position.epoch,
            "examples": position.examples,
            "dev": dict(report),
            **({"code": code} if code else {}),
        }

    def _save_model(self, name: str, meta: Mapping[str, Any]) -> None:
        if self.place.path is not None and self.place.folder is not None:
            config = write_config(self.checked.config)
            save_model(self.agent, self.place.path / name, config, meta, self.tasks.values())
            self.saved = str(self.place.folder / name)

    def checkpoint(self, step: int, state: Mapping[str, Any]) -> None:
        """Write a checkpoint. The first one behind an evaluation of what was learnt makes the
        run sure of its place: all data has been read, and steps can be made."""
        if self.checkpoints is None or self.place.folder is None:
            return
        if self._fingerprints is None:
            self._fingerprints = fingerprints(self.experiment)
        settings, arrays = optimizer_state(self.optimizer)
        whole = {
            "loop": state,
            "optimizer": settings,
            "config": self.checked.interpolated,
            "ops": self.experiment.ops_name,
            "data": self._fingerprints,
            "best": self._best,
        }
        with self.checkpoints.writing(step) as folder:
            self.agent.to_disk(folder)
            write_encoders(self.experiment.learner.model, folder)
            (folder / ARRAYS).mkdir()
            for name, array in arrays.items():
                write_array(folder / ARRAYS / f"{name}.npy", array)
            if self._best is not None:
                # No link to model-best's: one damaged file shall not damage all checkpoints.
                write_array(folder / BEST_WEIGHTS, to_numpy(self.best_weights))
            (folder / STATE).write_text(_as_json(whole) + "\n", encoding="utf8")
        self.newest = str(Checkpoints(self.place.folder).at(step))
        if self._is_evaluated and self._has_learnt:
            self.place.take_over()

    # --- taking back ------------------------------------------------------------------

    def find(self, note: Callable[[str], None]) -> Optional[Dict[str, Any]]:
        """The newest whole checkpoint of the folder, if the run can go on from there.

        note (Callable): Called with lines for the user.
        RETURNS (Optional[Dict[str, Any]]): Its state, for ``restore``; None if there is none.
        RAISES (DialogError): If all are damaged, or config or data are those of another run.
        """
        if self.checkpoints is None:
            note("There are no checkpoints of such an agent or optimizer: starting afresh.")
            return None
        newest = self.checkpoints.newest(note)
        if newest is None:
            note(f"There is no checkpoint in {self.place.folder}: starting afresh.")
            return None
        state = read_json(newest / STATE)
        self.newest = str(newest)
        with self.taking_back():
            check_ops(self.experiment, state["ops"], newest)
            changes = check_config(self.experiment, state["config"], newest)
            self._fingerprints = fingerprints(self.experiment)
            others = check_data(self.experiment, state["data"], self._fingerprints, newest)
        note(f"Resuming from {newest}.")
        changed = [*map(str, changes), *(f"what is in {path}" for path in others)]
        if changed:
            note(f"Changed since: {'; '.join(changed)}.")
        return state

    @contextmanager
    def taking_back(self) -> Iterator[None]:
        """A stretch in which the state from ``find`` is used.

        RAISES (ModelError): If it is none, though it is what was written.
        """
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            if isinstance(error, DialogError) or told_of_code(error):
                raise
            reason = " ".join(repr(error)[:200].split())
            raise ModelError(
                f"{Path(self.newest) / STATE}  is no state of this run ({reason}). {ANEW}"
            ) from error

    def restore(self, state: Mapping[str, Any]) -> None:
        """Bring agent, optimizer and best model to where the newest checkpoint was.

        state (Mapping[str, Any]): From ``find``.
        """
        agent, newest = self.experiment.learner, Path(self.newest)
        check_encoders(agent.model, newest)
        agent.from_disk(newest, tokenizer=self.experiment.tokenizer)
        arrays = {path.stem: read_array(path) for path in (newest / ARRAYS).iterdir()}
        restore_optimizer(self.optimizer, agent.weights, state["optimizer"], arrays)
        self._best = state["best"]
        if self._best is not None:
            self._restore_best(newest / BEST_WEIGHTS, self._best)

    def _restore_best(self, weights: Path, meta: Mapping[str, Any]) -> None:
        """The best model, also in the run's folder: the process that was killed may have
        found a better one behind the checkpoint, which will be found again."""
        assert self.place.path is not None
        agent, place = self.experiment.learner, self.place.path / BEST
        values: Any = read_array(weights)
        if values.shape != agent.weights.shape:
            raise ModelError(f"{weights}  has {values.size:,} weights, not the model's. {ANEW}")
        self.best_weights = get_array_module(agent.weights).asarray(values)
        known: Dict[str, Any] = {}
        with suppress(ModelError, OSError):  # Damaged, or gone.
            saved = read_meta(place)
            is_whole = not find_changes(place, saved)
            if is_whole and filecmp.cmp(weights, place / WEIGHTS, shallow=False):
                known = saved
        if any(known.get(key) != value for key, value in meta.items()):
            with agent.with_weights(self.best_weights):
                self._save_model(BEST, meta)


def _as_json(whole: Mapping[str, Any]) -> str:
    """RAISES (TrainingError): If a state is not made of JSON values; names the part."""
    try:
        return json.dumps(whole, default=_plain)
    except (TypeError, ValueError) as error:
        parts = {"optimizer": whole["optimizer"], "world or runner": whole["loop"]["runner"]}
        for name, state in whole["loop"]["callbacks"].items():
            parts[f"callback '{name}'"] = state
        guilty = []
        for name, state in parts.items():
            try:
                json.dumps(state, default=_plain)
            except (TypeError, ValueError):
                guilty.append(name)
        raise TrainingError(
            f"The state of {' and '.join(guilty) or 'the run'} cannot be saved: {error}. Let its "
            "state() give JSON values only: numbers, texts, lists, and dicts with texts as keys."
        ) from None


def _plain(value: Any) -> Any:
    """A number of NumPy's as Python's."""
    if isinstance(value, numpy.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no JSON value")
