"""Trains a dialogue model as a config says, evaluates it and saves it."""

import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, TextIO, Union

from ..agents import ModelAgent
from ..batchers import Fixed
from ..config import CheckedConfig, ConfigLike, load_code, load_config, resolve_config
from ..errors import ConfigError, Problem
from ..evaluation.evaluate_agent import evaluate_agent, evaluation_teacher, sample_exchanges
from ..evaluation.final_scores import count_training, score_split
from ..evaluation.results import Result
from ..loggers.logger import LoggedRun
from ..ops.choice import using_ops
from ..protocol import Agent
from ..teachers import Teacher
from ..training.hogwild import hogwild_steps, hogwild_world, side_by_side
from ..training.hogwild_checks import check_hogwild
from ..training.interruption import Interrupted, Interruption
from ..training.loop import TrainingLoop
from ..training.loop_settings import LoopSettings
from ..training.packages import training_ops
from ..training.reading_bar import reading_bar
from ..training.steps import Steps
from ..training.stopping import Position
from ..training.task import split_of, tasks_of, without_training_data
from ..worlds import batch_world
from .model_card import write_card
from .output_folder import check_output, taken_back
from .run_keeper import BEST, RunKeeper
from .run_log import RunLog, run_log, run_loggers
from .scores_file import write_scores

# Split to metric to value.
Reports = Dict[str, Dict[str, float]]


def train(
    config: ConfigLike,
    *,
    output: Union[str, Path, None] = None,
    overrides: Optional[Mapping[str, Any]] = None,
    force: bool = False,
    resume: bool = False,
    code: Optional[Union[str, Path]] = None,
    stdout: Optional[TextIO] = None,
    stderr: Optional[TextIO] = None,
) -> Result:
    """Train, evaluate and save a model.

    In the main thread, SIGINT (Ctrl-C) and SIGTERM end training behind the step that is
    under way, when all that was learnt is saved; a second Ctrl-C ends it at once.

    config (ConfigLike): Path of a config, its text, a Config, or a dict of its sections.
    output (Union[str, Path, None]): Folder for model-best, model-last, checkpoints and
        log.jsonl; None saves nothing.
    overrides (Optional[Mapping[str, Any]]): "section.key" to value.
    force (bool): Whether a run that is in the folder may be replaced.
    resume (bool): Go on from the folder's newest checkpoint, as if the run had never
        stopped; begin, if there is none.
    code (Union[str, Path, None]): Python file to import first; it may register
        functions that the config names.
    stdout (Optional[TextIO]): Where loggers write results; sys.stdout if None.
    stderr (Optional[TextIO]): Where loggers write progress; sys.stderr if None.
    RETURNS (Result): Scores, samples and where the model lies.
    RAISES (DialogError): If config, data, output folder or training go wrong; before
        the config is good, no data is read and nothing is written.
    RAISES (KeyboardInterrupt): If a signal ended it; its text is the folder of what was
        saved last. ``Interrupted`` tells whether that is a checkpoint to go on from.
    """
    load_code(code)
    checked = load_config(config, overrides or {})
    folder = None if output is None else Path(output)
    ops = training_ops(checked)
    with using_ops(ops), taken_back(folder), Interruption() as interruption:
        run = TrainingRun(checked, folder, stdout or sys.stdout, stderr or sys.stderr, interruption)
        run.code = None if code is None else str(code)
        check_output(folder, force, resume)
        try:
            # From here on the folder is ours: another process might mend what we write.
            with run_log(folder) as run.log:
                state = run.find(force) if resume else None
                run.begin(state)
                return run.train(state)
        except ConfigError as error:  # Found with the data, by parts that know no file.
            raise ConfigError(error.problems, checked.name) from error
        except Interrupted as interrupt:
            raise Interrupted(interrupt.number, run.keeper.newest, run.keeper.saved) from None
        except KeyboardInterrupt:
            raise KeyboardInterrupt(run.keeper.saved) from None


class TrainingRun:
    """One call of ``train``: the built parts, and where they go. Making one finds all that
    is wrong with a config before its data is read.

    RAISES (DialogError): If something is.
    """

    def __init__(
        self,
        checked: CheckedConfig,
        folder: Optional[Path],
        stdout: TextIO,
        stderr: TextIO,
        interruption: Interruption,
    ):
        parts = resolve_config(checked)
        self.checked, self.folder = checked, folder
        self.stdout, self.stderr, self.interruption = stdout, stderr, interruption
        self.seed: int = parts["system"]["seed"]
        self.training: Dict[str, Any] = parts["training"]
        self.agent: Agent = parts["agent"]
        self.tokenizer, self.make_world = parts["tokenizer"], parts["world"]
        self.baselines: Dict[str, Agent] = parts["baselines"]
        self._check_baselines()
        self._check_optimizer()
        self.is_hogwild = check_hogwild(checked, parts)
        self.code: Optional[str] = None  # For processes, which import it, too.
        self.parts = parts
        self.tasks: Dict[str, Teacher] = parts["tasks"]
        tasks_of(checked, parts, "train")
        for task in self.tasks.values():
            task.check_sources()
        self.teacher = split_of(checked, parts, "train", training=True)
        self._check_end()
        self.keeper = RunKeeper(checked, self.agent, self.training["optimizer"], self.tasks, folder)
        self.log: List[RunLog] = []

    def _check_baselines(self) -> None:
        problems = [
            Problem(
                self.checked.where("baselines", name),
                f"[baselines.{name}] has weights to train",
                "give it a config of its own, or choose an agent without weights",
            )
            for name, agent in self.baselines.items()
            if isinstance(agent, ModelAgent)
        ]
        if problems:
            raise ConfigError(problems, self.checked.name)

    def _check_optimizer(self) -> None:
        try:
            self.agent.check_optimizer(self.training["optimizer"])
        except ConfigError as error:
            where = self.checked.where("training", "optimizer")
            problems = [problem._replace(where=where) for problem in error.problems]
            raise ConfigError(problems, self.checked.name) from None

    def _check_end(self) -> None:
        training = self.training
        has_weights = isinstance(self.agent, ModelAgent)
        if has_weights and self.teacher.is_endless and not training["max_steps"]:
            if not training["max_seconds"]:
                text = "[training] max_epochs ends nothing: the training data has no end"
                where = self.checked.where("training", "max_epochs")
                problem = Problem(where, text, "set max_steps or max_seconds")
                raise ConfigError([problem], self.checked.name)

    def find(self, force: bool) -> Optional[Dict[str, Any]]:
        """What to go on from; None to begin."""
        state = self.keeper.find(self._note)
        if state is None:
            check_output(self.folder, force, resume=True, has_checkpoint=False)
        return state

    def begin(self, state: Optional[Dict[str, Any]]) -> None:
        """The run begins, or goes on from a state: what came behind it is forgotten,
        checkpoints before rows, so that none is left that lacks its rows."""
        self.keeper.begin(anew=state is None)
        for log in self.log:
            log.begin(None if state is None else int(state["loop"]["evaluated_step"]))

    def _note(self, line: str) -> None:
        self.stderr.write(f"{line}\n")
        self.stderr.flush()

    def train(self, state: Optional[Dict[str, Any]]) -> Result:
        unused = without_training_data(self.parts)
        if unused:
            tail = "no training data, so its weight counts for nothing"
            self._note(f"[mixture.weights] {', '.join(unused)}: {tail}")
        dev = self.split("dev")
        if state is not None:
            self.keeper.restore(state, self.tokenizer)
        else:
            with reading_bar(self.stderr) as progress:
                self.agent.initialize(
                    self.teacher, tokenizer=self.tokenizer, seed=self.seed, progress=progress
                )
        if isinstance(self.agent, ModelAgent):
            result = self._learn(self.agent, dev, state)
        else:
            result = Result(self.training["score"], "it has no weights to train", 0, 0.0, 0)
            self.keeper.evaluated(Position(), {}, is_best=True)
        self._finish(result, dev)
        if self.folder is not None:
            write_scores(self.folder, result)
            write_card(self.folder / BEST, result)
        return result

    def split(self, split: str) -> Optional[Teacher]:
        """The teacher to evaluate on a split, None if there is no data for it."""
        if not any(split in task.splits for task in self.tasks.values()):
            return None
        return evaluation_teacher(self.checked, self.parts, split)

    # --- learning -------------------------------------------------------------------

    def _learn(
        self, agent: ModelAgent, dev: Optional[Teacher], state: Optional[Dict[str, Any]]
    ) -> Result:
        settings = LoopSettings.of(self.checked, self.parts)
        step = max(0, state["loop"]["evaluated_step"]) if state else 0
        logged = LoggedRun(
            self.checked.interpolated,
            str(self.folder) if self.folder else None,
            step,
            settings.limits.total_steps(None),
        )
        setup = self.training["logger"]
        loggers = run_loggers(self.log, setup, logged, self.stdout, self.stderr)
        with loggers as log, self._steps(agent, settings) as steps:
            loop = TrainingLoop(
                agent,
                self.teacher,
                steps,
                settings,
                log,
                (lambda: self._evaluate(agent, dev)) if dev is not None else None,
                self.keeper,
                self.interruption,
            )
            if state is not None:
                loop.restore(state["loop"])
            first_step = loop.position.step
            try:
                reason = loop.run()
            except Interrupted:
                raise
            except KeyboardInterrupt:
                self.keeper.left(loop.position)
                raise
        if state is not None and loop.position.step == first_step:
            self._note(f"The run had ended ({reason}); raise its limits to train on.")
        best = loop.selection.best
        return Result(
            score_name=settings.score,
            stopped_because=reason,
            best_step=best.step if best is not None else loop.position.step,
            seconds=loop.clock.seconds(),
            n_parameters=agent.parameters.n_parameters,
        )

    @contextmanager
    def _steps(self, agent: ModelAgent, settings: LoopSettings) -> Iterator[Steps]:
        if not self.is_hogwild:
            with self.make_world(self.teacher, agent) as world:
                yield Steps(agent, world, settings)
        else:
            parts = (self.checked, self.parts, agent, self.teacher, self.code)
            world = hogwild_world(*parts, is_ending=self.interruption.has_come)
            with hogwild_steps(world, agent, settings, self.interruption, self._note) as steps:
                yield steps

    def _evaluate(self, agent: Agent, teacher: Teacher) -> Dict[str, float]:
        make_world = self.parts["evaluation"]["world"]
        if self.is_hogwild:
            n_workers = self.parts["hogwild"]["workers"]
            make_world = side_by_side(make_world, n_workers, self.interruption.has_come)
        return evaluate_agent(agent, teacher, make_world)

    # --- afterwards -----------------------------------------------------------------

    def _finish(self, result: Result, dev: Optional[Teacher]) -> None:
        """Scores of the best weights and of the baselines, and a few conversations."""
        if isinstance(self.agent, ModelAgent) and self.keeper.best_values is not None:
            self.agent.parameters.load(self.keeper.best_values)
            self.agent.forget_computed()
        result.output = self.folder
        count_training(result, self.teacher)
        teachers = {"dev": dev, "test": self.split("test")}
        known = {split: teacher for split, teacher in teachers.items() if teacher is not None}
        for split, teacher in known.items():
            score_split(result, split, self.agent, teacher, self.parts["evaluation"])
        result.baselines = self.measure_baselines(known)
        if known:
            last = list(known.values())[-1]
            result.samples = sample_exchanges(self.agent, last, self.training["n_samples"])

    def measure_baselines(self, teachers: Mapping[str, Teacher]) -> Dict[str, Reports]:
        """The reports of the baselines: name to split to metric to value.

        teachers (Mapping[str, Teacher]): Of the splits to evaluate on.
        """
        found: Dict[str, Reports] = {}
        for name, baseline in self.baselines.items():
            train = split_of(self.checked, self.parts, "train", training=True)
            baseline.initialize(train, tokenizer=None, seed=self.seed)
            found[name] = {
                # Not every one can shorten what it reads, as the config's batcher may want.
                split: evaluate_agent(baseline, teacher, partial(batch_world, batcher=Fixed(64)))
                for split, teacher in teachers.items()
            }
        return found
