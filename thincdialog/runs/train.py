"""Train a dialogue model from a config, evaluate it and save it."""

import sys
from collections import Counter
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, Set, TextIO, Union

from ..batchers import Fixed
from ..config import ConfigLike
from ..errors import TrainingError
from ..evaluation.calibration import calibrate
from ..evaluation.evaluate_agent import evaluate_agent, sample_exchanges
from ..evaluation.results import Result
from ..evaluation.shared_file import shared_file
from ..evaluation.unreachable import unreachable_labels
from ..files.plain_file import real_path
from ..files.saved_model import BEST
from ..loader.starting import check_script_is_guarded
from ..loggers.chain import run_loggers
from ..loggers.logger import LoggedRun
from ..teachers import Teacher
from ..training.beginning import initial_model_folder
from ..training.experiment import CodeLike, Experiment, Overrides
from ..training.interruption import Interrupted, Interruption
from ..training.loop import TrainingLoop
from ..training.problems import check_training
from ..training.progress import Position
from ..training.triggers import LIMITS, OF_EPOCHS, TrainingLimits
from ..worlds import BatchWorld
from .model_card import write_card
from .output_folder import check_output, check_start, taken_back
from .run_keeper import RunKeeper
from .scores_file import write_scores

# The run warns if a higher fraction of contexts is truncated.
WARN_SHARE = 0.25
# Largest split whose candidates are counted, for the model card.
MOST_COUNTED = 50_000
# Split to metric to value.
Reports = Dict[str, Dict[str, float]]


def train(
    config: ConfigLike,
    *,
    output: Union[str, Path, None] = None,
    overrides: Overrides = None,
    force: bool = False,
    resume: bool = False,
    code: CodeLike = None,
    stdout: Optional[TextIO] = None,
    stderr: Optional[TextIO] = None,
    prepare: Callable[[Experiment], object] = lambda experiment: None,
) -> Result:
    """Train, evaluate and save a model.

    In the main thread, SIGINT (Ctrl-C), SIGTERM and SIGHUP end training after the current step, and
    the model is saved. A second Ctrl-C ends training at once.

    config (ConfigLike): Path of a config, its text, a Config, or a dict of its sections.
    output (Union[str, Path, None]): Folder for model-best, model-last, checkpoints and
        log.jsonl; None saves nothing.
    overrides (Optional[Mapping[str, Any]]): "section.key" to value.
    force (bool): Whether to replace a run in the folder. The old run is only moved away until this
        one has trained and written a checkpoint; or, if it writes no checkpoints, until it has
        ended. It is moved back if an error occurs before.
    resume (bool): Whether to resume from the folder's newest checkpoint, as if the run had never
        been interrupted. Without a checkpoint it starts from scratch, or raises an error if the
        folder has a model.
    code (CodeLike): Python file or files to import first; they may register functions.
    stdout (Optional[TextIO]): Stream for the results of loggers; sys.stdout if None.
    stderr (Optional[TextIO]): Stream for the progress of loggers; sys.stderr if None.
    prepare (Callable): Called with the experiment of the config, before any data is read.
    RETURNS (Result): Scores, samples and the folder of the model.
    RAISES (DialogError): If there is an error in the config, the data, the output folder or the
        training. No data is read and nothing is written until the config is valid.
    RAISES (KeyboardInterrupt): If a signal ended the run. The text of the exception is the folder
        that was saved last; the attribute ``saved`` of an ``Interrupted`` is the checkpoint to
        resume from, if there is one.
    """
    check_script_is_guarded("train()", "train without processes")
    folder = None if output is None else Path(output)
    with taken_back(folder), Interruption() as interruption:
        experiment = Experiment.from_config(config, overrides, code)
        with experiment.working(), closing(experiment.readers):
            prepare(experiment)
            run = TrainingRun(experiment, folder, stdout or sys.stdout, stderr or sys.stderr)
            run.interruption = interruption
            if not resume:
                initial_model_folder(experiment.checked)
            check_output(folder, force, resume)
            try:
                with run.keeper.keeping(run.note):
                    state = run.keeper.find(run.note) if resume else None
                    if resume and state is None and not force:
                        check_start(folder)
                    try:
                        return run.train(state)
                    finally:  # Also after an error, which skipped data may have caused.
                        run.note_bad_data()
            except Interrupted as interrupt:
                raise Interrupted(interrupt.number, run.keeper.newest, run.keeper.saved) from None
            except KeyboardInterrupt:
                raise KeyboardInterrupt(run.keeper.saved) from None


class TrainingRun:
    """Make the run of one ``train`` call. The constructor raises all errors that can be found
    before data is read.

    experiment (Experiment): The experiment to train.
    folder (Optional[Path]): Folder of the run.
    RAISES (DialogError): If there is an error.
    """

    def __init__(
        self, experiment: Experiment, folder: Optional[Path], stdout: TextIO, stderr: TextIO
    ):
        self.experiment, self.folder = experiment, folder
        self.stdout, self.stderr = stdout, stderr
        self.interruption = Interruption()
        check_training(experiment)
        _check_store(experiment, folder)
        self.teacher = experiment.training_split(with_metrics=False)
        limits = experiment.training["max_steps"] or experiment.training["max_seconds"]
        if experiment.agent.learns and self.teacher.order.is_endless and not limits:
            text = "[training] max_epochs cannot end training, because the data is endless"
            hint = "set max_steps or max_seconds"
            raise experiment.checked.error(text, hint, "training", "max_epochs")
        self.keeper = RunKeeper(experiment, folder)
        self._noted: Set[str] = set()
        experiment.readers.note = self.note

    def note(self, line: str) -> None:
        self.stderr.write(f"{line}\n")
        self.stderr.flush()

    def _warn_unreachable(self, split: str, teacher: Teacher) -> None:
        """Warn if the agent can never reply with most labels of a split."""
        warning = unreachable_labels(self.experiment.agent, teacher)
        if warning:
            self.note(f"{split}: {warning}.")

    def train(self, state: Optional[Dict[str, Any]]) -> Result:
        """Train, evaluate and save."""
        experiment = self.experiment
        unused = experiment.unused_weights()
        if unused:
            tail = "no training data, so its weight has no effect"
            self.note(f"[mixture.weights] {', '.join(unused)}: {tail}")
        experiment.use_examples(self.stderr)
        splits = filter(experiment.has_split, ("dev", "test"))
        held_out = {split: experiment.evaluation_split(split) for split in splits}
        dev = held_out.get("dev")
        if state is not None:
            with self.keeper.taking_back():
                self.keeper.restore(state)
            experiment.choose(self.teacher)
        else:
            experiment.initialize(self.teacher, self.stderr)
        experiment.use_tokens(self.stderr)
        teachers = [self.teacher, *held_out.values()]
        # Read all data that stays in memory, so that its errors are found before training.
        sizes = [teacher.n_examples for teacher in teachers]
        fractions = [name for name in OF_EPOCHS if experiment.training[name] % 1]
        if sizes[0] is None and fractions:
            text = "train is a stream, whose size is known only after the first epoch. Until then,"
            self.note(f"{text} fractions of an epoch ({', '.join(fractions)}) have no effect.")
        if sizes[-1] is None and experiment.has_split("test"):
            text = "is a stream, which is read only after training;"
            self.note(f"test {text} to check it now, run `debug data`.")
        experiment.encode_ahead(teachers, self.stderr)
        for name, task in experiment.tasks.items():
            for split in task.splits:
                if shared := shared_file(task, split):
                    self.note(f"[tasks.{name}] {split}: {shared}.")
        self.note_bad_data()
        if dev is not None:
            self._warn_unreachable("dev", dev)
        self.keeper.begin(state)
        if self.folder is not None:
            self.note(f"Saving to {self.folder}")
        with ExitStack() as stack:
            if experiment.agent.learns:
                result = self._learn(dev, state, stack)
            else:
                why = "it has no weights to train"
                result = Result(experiment.training["score"], why, 0, 0.0, 0)
                self.keeper.evaluated(Position(), {}, is_best=True)
            reading = experiment.agent.reading()
            result.can_chat = not (reading.n_features or reading.other_fields)
            result.has_classes = experiment.agent.has_classes
            result.reads_files = bool(self.teacher.files("train"))
            self._finish(result, held_out)
        self.note_bad_data()
        result.left_out.update(experiment.left_out())
        if self.folder is not None:
            write_scores(self.folder, result)
            write_card(self.folder / BEST, result)
            self.keeper.replace()
        return result

    def note_bad_data(self) -> None:
        """Report the skipped examples, once for each file."""
        for path, bad in self.experiment.bad_data().items():
            if path not in self._noted:
                self._noted.add(path)
                self.note(bad.summary())

    def _evaluated(self, report: Mapping[str, float]) -> None:
        """Report problems after an evaluation. Streams may have been read to their end by now."""
        self.note_bad_data()
        self._note_undefined("dev", report)

    def _note_undefined(self, split: str, report: Mapping[str, float]) -> None:
        """Report that a metric is nan, once for each metric.

        RAISES (TrainingError): If the metric is the run's score, because no model could be the
            best.
        """
        for name, shown in self.experiment.undefined_scores(report).items():
            if split == "dev" and name == self.experiment.training["score"]:
                hint = "choose another one, or fix it"
                raise TrainingError(f"[training] score = {shown} is nan on the dev data: {hint}.")
            if shown not in self._noted:
                self._noted.add(shown)
                self.note(f"{split}: the metric {shown} is nan.")

    def _learn(
        self, dev: Optional[Teacher], state: Optional[Dict[str, Any]], stack: ExitStack
    ) -> Result:
        """Train the agent.

        dev (Optional[Teacher]): Teacher of the dev data.
        state (Optional[Dict[str, Any]]): State to resume from; None to start from scratch.
        stack (ExitStack): Ends the runner later, because its workers evaluate the result.
        """
        experiment, training = self.experiment, self.experiment.training
        chosen = "".join(f", {name} = {number:,}" for name, number in experiment.chosen.items())
        self.note(f'Computing with ops = "{experiment.ops_name}"{chosen}.')
        step = max(0, state["loop"]["logged_step"]) if state else 0
        logged = LoggedRun(
            experiment.checked.interpolated,
            str(self.folder) if self.folder else None,
            step,
            TrainingLimits.of(training).total_steps(None),
        )
        own = [] if self.keeper.log is None else [self.keeper.log.setup]
        runner = experiment.runner
        with run_loggers([*own, training["logger"]], logged, self.stdout, self.stderr) as log:
            runner.begin(experiment, self.teacher, self.interruption, self.note)
            stack.callback(runner.end)
            loop = TrainingLoop(
                experiment, self.teacher, dev, log, self.keeper, self.interruption, self._evaluated
            )
            try:
                if state is not None:
                    with self.keeper.taking_back():
                        loop.restore(state["loop"])
                first_step = loop.position.step
                reason = loop.run()
            except Interrupted:
                raise
            except KeyboardInterrupt:
                self.keeper.left(loop.position)
                raise
        if state is not None and loop.position.step == first_step:
            self.note(f"The run had already ended ({reason}); raise its limits to continue.")
        if loop.truncated > WARN_SHARE:
            text = f"{100 * loop.truncated:.1f} % of the contexts were longer than"
            self.note(f"{text} [agent] max_context and truncated; see debug data.")
        limit = reason.partition(" ")[0]
        is_best = dev is not None and loop.selection.step == loop.position.step
        if is_best and limit in LIMITS:
            text = f"{training['score']} on dev was still improving at the end. To continue, set"
            how = " with --resume" if self.folder else ""
            # In a stream of unknown size, the first epoch may be longer than max_epochs.
            had = int(loop.position.epoch) if limit == "max_epochs" else 0
            self.note(f"{text} [training] {limit} = {2 * max(training[limit], had)}{how}.")
        n_trained, n_examples = loop.epochs.n_examples, self.teacher.n_examples
        if loop.epochs.number and n_trained and n_examples and n_trained < n_examples:
            text = (
                f"Each epoch trained on {n_trained:,} of {n_examples:,} examples, because the agent"
            )
            self.note(f"{text} learns nothing from the others. Perhaps they have no label.")
        if dev is not None and loop.selection.step == 0 < loop.position.step:
            text = f"no step has improved {training['score']} on dev, so the best weights are those"
            self.note(f"{text} before training. See debug data and find-lr.")
        return Result(
            score_name=training["score"],
            stopped_because=reason,
            best_step=loop.selection.step,
            seconds=loop.clock.seconds(),
            n_parameters=experiment.learner.n_weights,
            left_out=dict(loop.left_out),
        )

    def _finish(self, result: Result, teachers: Mapping[str, Teacher]) -> None:
        """Measure the scores of the best weights and of the baselines, and sample some
        conversations."""
        experiment = self.experiment
        if experiment.agent.learns and self.keeper.best_weights is not None:
            experiment.learner.weights[:] = self.keeper.best_weights
            experiment.learner.weights_changed()
        if experiment.agent.temperature is not None and "dev" in teachers:
            if note := calibrate(experiment):
                self.note(f"dev: {note}.")
        result.output = self.folder
        counts = {name: task.n_examples for name, task in self.teacher.by_task().items()}
        result.train_examples = {name: n for name, n in counts.items() if n is not None}
        for split, teacher in teachers.items():
            if "dev" not in teachers:
                self._warn_unreachable(split, teacher)
            result.scores[split] = experiment.runner.evaluate(experiment, teacher)
            if split == "dev" and experiment.agent.temperature is not None:
                self.keeper.calibrated(result.scores[split])
            self._note_undefined(split, result.scores[split])
        result.baselines = measure_baselines(experiment, teachers)
        if teachers:
            last, reachable = list(teachers.values())[-1], experiment.agent.reachable
            if 0 < (last.n_examples or 0) <= MOST_COUNTED:
                labelled = (each for each in last.examples() if each.all_labels)
                result.choices = dict(Counter(len(reachable(each) or ()) for each in labelled))
            n_samples = experiment.training["n_samples"]
            result.samples = sample_exchanges(experiment.agent, last, n_samples)


def measure_baselines(
    experiment: Experiment, teachers: Mapping[str, Teacher]
) -> Dict[str, Reports]:
    """Return the scores of the baselines: name to split to metric to value.

    teachers (Mapping[str, Teacher]): Teachers of the splits to evaluate on.
    """
    found: Dict[str, Reports] = {}
    for name, baseline in experiment.baselines.items():
        train = experiment.training_split()
        baseline.initialize(train, tokenizer=None, seed=experiment.seed)
        found[name] = {
            # The config's batcher is not used, because it may truncate texts, which not every
            # baseline supports.
            split: evaluate_agent(baseline, teacher, partial(BatchWorld, batcher=Fixed(64)))
            for split, teacher in teachers.items()
        }
    return found


def _check_store(experiment: Experiment, folder: Optional[Path]) -> None:
    """Check that no store is in the run's folder, because another run may replace the whole folder.

    RAISES (ConfigError): If a store is there.
    """
    if experiment.stores is None or folder is None:
        return
    root, own = real_path(experiment.stores.root), real_path(folder)
    if own == root or own in root.parents:
        text = f"[loader] store is '{experiment.stores.root}', in the folder of the run"
        hint = "give a folder next to it, which other runs can use, too"
        raise experiment.checked.error(text, hint, "loader", "store")
