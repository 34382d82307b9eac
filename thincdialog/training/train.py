"""Trains a dialogue model as a config says, evaluates it and saves it."""

import sys
from functools import partial
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, TextIO, Union

from ..agents import ModelAgent
from ..batchers import Fixed
from ..config import CheckedConfig, load_code, load_config, resolve_config, write_config
from ..config.reading import ConfigLike
from ..errors import ConfigError, OutputError, Problem
from ..loggers.logger import Logger, Start
from ..ops.choice import get_dialog_ops, using_ops
from ..protocol import Agent
from ..teachers import Teacher
from ..worlds import batch_world
from .evaluation import evaluate_agent, evaluation_teacher, sample_exchanges
from .loop import LoopSettings, TrainingLoop
from .model_folder import holds_something_else, save_model
from .reading_bar import reading_bar
from .results import Result
from .run_log import run_log, run_loggers
from .scores_file import write_scores
from .stopping import Every, Limits, Position
from .task import split_of, tasks_of

BEST, LAST = "model-best", "model-last"


def train(
    config: ConfigLike,
    *,
    output: Union[str, Path, None] = None,
    overrides: Optional[Mapping[str, Any]] = None,
    force: bool = False,
    code: Optional[Union[str, Path]] = None,
    stdout: Optional[TextIO] = None,
    stderr: Optional[TextIO] = None,
) -> Result:
    """Train, evaluate and save a model.

    config (ConfigLike): Path of a config, its text, a Config, or a dict of its sections.
    output (Union[str, Path, None]): Folder for model-best and model-last; None saves
        nothing.
    overrides (Optional[Mapping[str, Any]]): "section.key" to value.
    force (bool): Whether models that are in the folder may be replaced.
    code (Union[str, Path, None]): Python file to import first; it may register
        functions that the config names.
    stdout (Optional[TextIO]): Where loggers write results; sys.stdout if None.
    stderr (Optional[TextIO]): Where loggers write progress; sys.stderr if None.
    RETURNS (Result): Scores, samples and where the model lies.
    RAISES (DialogError): If config, data, output folder or training go wrong; before
        the config is good, no data is read and nothing is written.
    """
    load_code(code)
    checked = load_config(config, overrides or {})
    folder = None if output is None else Path(output)
    ops = get_dialog_ops(checked.interpolated["system"]["gpu_id"])
    with using_ops(ops):
        run = _Run(checked, folder, stdout or sys.stdout, stderr or sys.stderr)
        if folder is not None:
            check_output(folder, force)
        try:
            with run_log(folder) as run.log:
                return run.train()
        except ConfigError as error:  # Found with the data, by parts that know no file.
            raise ConfigError(error.problems, checked.name) from error
        except KeyboardInterrupt:
            raise KeyboardInterrupt(run.saved) from None


def check_output(folder: Path, force: bool) -> None:
    """See, before any work is done, that a model can be saved into a folder.

    RAISES (OutputError): If it holds something and ``force`` is not set, if it cannot
        be written, or if a model would take the place of what is none.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise OutputError(f"{folder}  is a file. Choose a folder with --output.")
        if folder.is_dir() and any(folder.iterdir()) and not force:
            raise OutputError(
                f"{folder}  is not empty. Choose another folder with --output, or replace "
                "the models in it with --force."
            )
        for name in (BEST, LAST):
            if holds_something_else(folder / name):
                raise OutputError(
                    f"{folder / name}  is no saved model, so --force does not replace it. "
                    "Choose another folder with --output."
                )
        folder.mkdir(parents=True, exist_ok=True)
        trial = folder / ".can_be_written"
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise OutputError(
            f"{folder}  cannot be written: {error.strerror}. Choose another folder with --output."
        ) from None


class _Run:
    """One call of ``train``: the built parts, and where they go."""

    def __init__(
        self, checked: CheckedConfig, folder: Optional[Path], stdout: TextIO, stderr: TextIO
    ):
        parts = resolve_config(checked)
        self.checked, self.folder = checked, folder
        self.stdout, self.stderr = stdout, stderr
        self.seed: int = parts["system"]["seed"]
        self.training: Dict[str, Any] = parts["training"]
        self.agent: Agent = parts["agent"]
        self.tokenizer = parts["tokenizer"]
        self.make_world = parts["world"]
        self.baselines: Dict[str, Agent] = parts["baselines"]
        self._check_baselines()
        self.parts = parts
        self.tasks: Dict[str, Teacher] = parts["tasks"]
        tasks_of(checked, parts, "train")
        for task in self.tasks.values():
            task.check_sources()
        self.teacher = split_of(checked, parts, "train", training=True)
        self._check_end()
        self.best_values: Any = None
        self.log: List[Logger] = []
        self.saved = ""  # Where the weights lie that were saved last.

    def _check_baselines(self) -> None:
        problems = [
            Problem(
                self.checked.reading.where("baselines", name),
                f"[baselines.{name}] has weights to train",
                "give it a config of its own, or choose an agent without weights",
            )
            for name, agent in self.baselines.items()
            if isinstance(agent, ModelAgent)
        ]
        if problems:
            raise ConfigError(problems, self.checked.name)

    def _check_end(self) -> None:
        training = self.training
        has_weights = isinstance(self.agent, ModelAgent)
        if has_weights and self.teacher.is_endless and not training["max_steps"]:
            if not training["max_seconds"]:
                text = "[training] max_epochs ends nothing: the training data has no end"
                where = self.checked.reading.where("training", "max_epochs")
                problem = Problem(where, text, "set max_steps or max_seconds")
                raise ConfigError([problem], self.checked.name)

    def train(self) -> Result:
        teacher, dev = self.teacher, self._split("dev")
        with reading_bar(self.stderr) as progress:
            self.agent.initialize(
                teacher, tokenizer=self.tokenizer, seed=self.seed, progress=progress
            )
        if isinstance(self.agent, ModelAgent):
            result = self._learn(self.agent, teacher, dev)
        else:
            result = Result(self.training["score"], "it has no weights to train", 0, 0.0, 0)
            self._save(BEST, Position(), {})
        self._finish(result, dev)
        if self.folder is not None:
            write_scores(self.folder, result)
        return result

    def _split(self, split: str) -> Optional[Teacher]:
        if not any(split in task.splits for task in self.tasks.values()):
            return None
        return evaluation_teacher(self.checked, self.parts, split)

    # --- learning -------------------------------------------------------------------

    def _learn(self, agent: ModelAgent, teacher: Teacher, dev: Optional[Teacher]) -> Result:
        training = self.training
        settings = LoopSettings(
            seed=self.seed,
            optimizer=training["optimizer"],
            limits=Limits(training["max_epochs"], training["max_steps"], training["max_seconds"]),
            every=Every(
                training["eval_every_epochs"],
                training["eval_every_steps"],
                training["eval_every_seconds"],
            ),
            score=training["score"],
            score_direction=training["score_direction"],
            patience=training["patience"],
            target_score=training["target_score"],
            accumulate_gradient=training["accumulate_gradient"],
            callbacks=training["callbacks"],
        )
        loggers = run_loggers(
            self.log,
            training["logger"],
            self.stdout,
            self.stderr,
            settings.limits.total_steps(None),
            Start(self.checked.interpolated, str(self.folder) if self.folder else None),
        )
        with loggers as logger, self.make_world(teacher, agent) as world:
            loop = TrainingLoop(
                agent,
                teacher,
                world,
                settings,
                logger,
                (lambda: self._evaluate(agent, dev)) if dev is not None else None,
                self._save_evaluated,
            )
            try:
                reason = loop.run()
            except KeyboardInterrupt:
                self._save(LAST, loop.position, {})
                raise
        best_step = loop.best.step if loop.best is not None else loop.position.step
        return Result(
            score_name=settings.score,
            stopped_because=reason,
            best_step=best_step,
            seconds=loop.clock.seconds(),
            n_parameters=agent.parameters.n_parameters,
        )

    def _evaluate(self, agent: Agent, teacher: Teacher) -> Dict[str, float]:
        return evaluate_agent(agent, teacher, self.parts["evaluation"]["world"])

    def _save_evaluated(
        self, position: Position, report: Mapping[str, float], is_best: bool
    ) -> None:
        """Keep the weights that were just evaluated (averaged ones, if any)."""
        if is_best:
            assert isinstance(self.agent, ModelAgent)
            self.best_values = self.agent.parameters.values.copy()
            self._save(BEST, position, report)
        self._save(LAST, position, report)

    def _save(self, name: str, position: Position, report: Mapping[str, float]) -> None:
        if self.folder is None:
            return
        meta = {
            "agent": self.checked.interpolated["agent"]["@agents"],
            "task": ", ".join(self.tasks),
            "step": position.step,
            "epoch": position.epoch,
            "examples": position.examples,
            "dev": dict(report),
        }
        save_model(self.agent, self.folder / name, write_config(self.checked.config), meta)
        self.saved = str(self.folder / name)

    # --- afterwards -----------------------------------------------------------------

    def _finish(self, result: Result, dev: Optional[Teacher]) -> None:
        """Scores of the best weights and of the baselines, and a few conversations."""
        if isinstance(self.agent, ModelAgent) and self.best_values is not None:
            self.agent.parameters.load(self.best_values)
            self.agent.forget_computed()
        teachers = {"dev": dev, "test": self._split("test")}
        known = {split: teacher for split, teacher in teachers.items() if teacher is not None}
        for split, teacher in known.items():
            result.scores[split] = self._evaluate(self.agent, teacher)
        for name, baseline in self.baselines.items():
            baseline.initialize(
                split_of(self.checked, self.parts, "train", training=True),
                tokenizer=None,
                seed=self.seed,
            )
            result.baselines[name] = {
                # Not every one can shorten what it reads, as the config's batcher may want.
                split: evaluate_agent(baseline, teacher, partial(batch_world, batcher=Fixed(64)))
                for split, teacher in known.items()
            }
        if known:
            last = list(known.values())[-1]
            result.samples = sample_exchanges(self.agent, last, self.training["n_samples"])
        result.output = self.folder
