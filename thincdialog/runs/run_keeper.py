"""Save the models and checkpoints of a run into its folder, and restore them."""

import filecmp
import json
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional

import numpy
from thinc.api import get_array_module, to_numpy

from ..config import distinct_names, write_config
from ..contract import code_error_line
from ..errors import DialogError, ModelError, TrainingError
from ..files.array_file import read_array, write_array
from ..files.held import AGENT, repair, temporary_folder
from ..files.json_file import read_json
from ..files.saved_model import BEST, CONFIG, LAST, find_changes, read_meta
from ..files.whole_file import whole_file, writing
from ..optimizers.state import has_state, optimizer_state, restore_optimizer
from ..pretrained.saved_encoder import check_encoders, write_encoders
from ..training.experiment import Experiment
from ..training.interruption import Note
from ..training.keeper import Keeper
from ..training.progress import Position
from .changes import Prints, check_config, check_data, check_limits, check_ops, fingerprints
from .checkpoints import ARRAYS, RESTART, STATE, Checkpoints
from .model_folder import save_model
from .replaced_run import REPLACED, WRITTEN_WHOLE, delete_replaced, move_away, move_back
from .run_log import RunLog

WEIGHTS = "weights.npy"
# File in a checkpoint: weights of the best model.
BEST_WEIGHTS = "best.npy"


class RunKeeper(Keeper):
    """Save models and checkpoints in a run's folder.

    experiment (Experiment): Holds the agent and the optimizer. No checkpoints are written if the
        agent has no weights, or if the state of the optimizer cannot be read.
    folder (Optional[Path]): The run's folder; None to keep only the best weights, in memory.
    """

    def __init__(self, experiment: Experiment, folder: Optional[Path]):
        self.experiment, self.folder = experiment, folder
        self.checked, self.tasks = experiment.checked, experiment.tasks
        self.agent, self.optimizer = experiment.agent, experiment.optimizer
        self._has_checkpoints = self.agent.learns and has_state(self.optimizer)
        self._is_evaluated = self._has_trained = False
        self.log: Optional[RunLog] = None  # The log of the run, in ``keeping``.
        self.saved = ""  # Folder of the model that was saved last.
        self.best_weights: Any = None
        self._best: Optional[Dict[str, Any]] = None  # The meta data of the best model.
        self._fingerprints: Optional[Prints] = None

    @property
    def checkpoints(self) -> Optional[Checkpoints]:
        """The checkpoints of the run; None if the run writes none."""
        folder = self.folder if self._has_checkpoints else None
        return None if folder is None else Checkpoints(folder)

    # --- keeping --------------------------------------------------------------------

    @contextmanager
    def keeping(self, note: Note) -> Iterator[None]:
        """Manage the run's files in the block, in which no other process may use the folder. If the
        run ends before it has replaced an old run, the old run is moved back; but if a signal ends
        it after training steps, it replaces the old run.

        note (Note): Shows the user one line of text.
        RAISES (OutputError): If unfinished changes of a killed run cannot be repaired.
        """
        repair(temporary_folder(), AGENT)  # Files of killed runs that saved nothing.
        if self.folder is None:
            yield
            return
        # The log locks the folder first, because only one process may repair it.
        with RunLog(self.folder) as self.log:
            if move_back(self.folder):
                text = "A run with --force was killed before its first checkpoint"
                note(f"{text}: the old run is back.")
            Checkpoints(self.folder).repair(*WRITTEN_WHOLE, REPLACED, AGENT)
            try:
                yield
            except KeyboardInterrupt:
                if self._has_trained:
                    self.replace()
                raise
            finally:
                if move_back(self.folder):
                    self.saved = self.newest = ""

    def replace(self) -> None:
        """Delete the old run, because this one has trained."""
        if self.folder is not None:
            delete_replaced(self.folder)

    def begin(self, state: Optional[Mapping[str, Any]]) -> None:
        """Begin or resume the run: write its config into the run's folder.

        state (Optional[Mapping[str, Any]]): State to resume from; log rows of later steps are
            deleted. None for a new run: an old run is then moved away until ``replace``.
        RAISES (OutputError): If the folder cannot be written.
        """
        if self.folder is None or self.log is None:
            return
        if state is None:
            move_away(self.folder)
        path = self.folder / CONFIG
        remedy = "Free some space or choose another folder with --output."
        with writing(path, remedy), whole_file(path) as temporary:
            temporary.write_text(write_config(self.checked.config), encoding="utf8")
        with self.taking_back():
            self.log.begin(None if state is None else int(state["loop"]["logged_step"]))

    def evaluated(self, position: Position, report: Mapping[str, float], is_best: bool) -> None:
        """Save the agent with its current weights (averaged, if there are averages) as model-last,
        and as model-best if it is the best."""
        meta = self._meta(position, report)
        if is_best:
            if self.agent.learns:
                self.best_weights = self.experiment.learner.weights.copy()
            self._best = meta
            self._save_model(BEST, meta)
        self._save_model(LAST, meta)
        self._is_evaluated = True
        self._has_trained = position.step > 0

    def calibrated(self, report: Mapping[str, float]) -> None:
        """Save model-best again with the agent's new temperature and threshold. The agent must have
        the best weights.

        report (Mapping[str, float]): Scores on dev with them.
        """
        if self._best is not None:
            agent: Any = self.experiment.agent
            chosen = {"temperature": agent.temperature, "threshold": agent.rejects_below}
            self._best.update(chosen, reject_class=agent.reject_class, dev=dict(report))
            self._save_model(BEST, self._best)

    def left(self, position: Position) -> None:
        """Save model-last without scores."""
        self._save_model(LAST, self._meta(position, {}))
        self._has_trained = position.step > 0

    def _meta(self, position: Position, report: Mapping[str, float]) -> Dict[str, Any]:
        # File names without folders, which differ between machines.
        code = distinct_names(self.experiment.code)
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
        if self.folder is not None:
            config = write_config(self.checked.config)
            save_model(self.agent, self.folder / name, config, meta, self.tasks.values())
            self.saved = str(self.folder / name)

    def checkpoint(self, step: int, state: Mapping[str, Any]) -> None:
        """Write a checkpoint. If training steps have been made and evaluated, also replace an old
        run, because this run has shown that it can read its data and train."""
        if self.checkpoints is None:
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
                # A copy instead of a link to model-best's file, because one damaged file must not
                # damage several checkpoints.
                write_array(folder / BEST_WEIGHTS, to_numpy(self.best_weights))
            (folder / STATE).write_text(_as_json(whole) + "\n", encoding="utf8")
        self.newest = str(self.checkpoints.at(step))
        if self._is_evaluated and self._has_trained:
            self.replace()

    # --- restoring --------------------------------------------------------------------

    def find(self, note: Note) -> Optional[Dict[str, Any]]:
        """Find the newest complete checkpoint of the folder, and check that the run can resume from
        it.

        note (Note): Shows the user one line of text.
        RETURNS (Optional[Dict[str, Any]]): The checkpoint's state, for ``restore``; None if there
            is no checkpoint.
        RAISES (DialogError): If all checkpoints are damaged, or if the config or the data differs
            from the run's.
        """
        if self.checkpoints is None:
            note("This agent or optimizer does not support checkpoints: starting from scratch.")
            return None
        newest = self.checkpoints.newest(note)
        if newest is None:
            note(f"There is no checkpoint in {self.folder}: starting from scratch.")
            return None
        state = read_json(newest / STATE)
        self.newest = str(newest)
        with self.taking_back():
            check_ops(self.experiment, state["ops"], newest)
            changes = check_config(self.experiment, state["config"], newest)
            check_limits(self.experiment, changes, state["loop"], newest)
            self._fingerprints = fingerprints(self.experiment)
            others = check_data(self.experiment, state["data"], self._fingerprints, newest)
        note(f"Resuming from {newest}.")
        changed = [*map(str, changes), *(f"the content of {path}" for path in others)]
        if changed:
            note(f"Changed since: {'; '.join(changed)}.")
        return state

    @contextmanager
    def taking_back(self) -> Iterator[None]:
        """Use a state from ``find`` in the block, and convert errors in it.

        RAISES (ModelError): If the state is not valid for this run, although its checksum is right.
        """
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            if isinstance(error, DialogError) or code_error_line(error):
                raise
            reason = " ".join(repr(error)[:200].split())
            raise ModelError(
                f"{Path(self.newest) / STATE}  is not a state of this run ({reason}). {RESTART}"
            ) from error

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the agent, the optimizer and the best model from the newest checkpoint.

        state (Mapping[str, Any]): The state that ``find`` returned.
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
        """Restore the best model, in memory and in the run's folder. The folder may contain a
        better model, which was found after the checkpoint was written; the resumed run will find it
        again."""
        assert self.folder is not None
        agent, place = self.experiment.learner, self.folder / BEST
        values: Any = read_array(weights)
        if values.shape != agent.weights.shape:
            raise ModelError(f"{weights}  has {values.size:,} weights, not the model's. {RESTART}")
        self.best_weights = get_array_module(agent.weights).asarray(values)
        known: Dict[str, Any] = {}
        with suppress(ModelError, OSError):  # The folder may be damaged, or may not exist.
            saved = read_meta(place)
            is_whole = not find_changes(place, saved)
            if is_whole and filecmp.cmp(weights, place / WEIGHTS, shallow=False):
                known = saved
        if any(known.get(key) != value for key, value in meta.items()):
            with agent.with_weights(self.best_weights):
                self._save_model(BEST, meta)


def _as_json(whole: Mapping[str, Any]) -> str:
    """Convert a state to JSON text.

    RAISES (TrainingError): If a part of the state has values that JSON cannot hold; names the part.
    """
    loop = whole["loop"]
    callbacks = {f"callback '{name}'": state for name, state in loop["callbacks"].items()}
    parts = {"optimizer": whole["optimizer"], "world or runner": loop["runner"], **callbacks}
    for name, state in parts.items():
        try:
            json.dumps(state, default=_plain)
        except (TypeError, ValueError) as error:
            raise TrainingError(
                f"The state of {name} cannot be saved: {error}. Return only JSON values from "
                "state(): numbers, strings, lists, and dicts with string keys."
            ) from None
    return json.dumps(whole, default=_plain)


def _plain(value: Any) -> Any:
    """Convert a NumPy number to a Python number."""
    if isinstance(value, numpy.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not a JSON value")
