"""An experiment: all objects that a config describes, built once."""

import gc
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, TextIO, Union, cast

import numpy
from thinc.api import fix_random_seed, get_current_ops

from ..config import (
    CheckedConfig,
    CodeLike,
    ConfigLike,
    Overrides,
    PathLike,
    build_block,
    code_files,
    load_code,
    load_config,
    resolve_config,
)
from ..contract import check_attributes, error_line, is_users, place_of
from ..data import Tokenizer
from ..errors import (
    ConfigError,
    DataError,
    MissingPackageError,
    ModelError,
    Problem,
    ProtocolError,
)
from ..examples.encoded import Encoding
from ..files.saved_model import model_folder, read_consistently, read_meta
from ..formats.context import BadData, tolerating
from ..formats.spellings import Place, Spellings, is_null_like
from ..loader.readers import Readers
from ..metrics import ExampleMetric
from ..metrics.accuracy import Accuracy
from ..metrics.class_f1 import ClassF1
from ..metrics.label_sets import LabelSets
from ..metrics.ranking import RANKED
from ..models.fitting import saved_shapes
from ..ops.choice import get_dialog_ops, ops_to_answer, using_ops
from ..ops.compiled import load_kernels
from ..ops.device_memory import gpu_memory_error, is_out_of_memory
from ..pretrained.frozen import encode_ahead
from ..protocol import Agent, Learner
from ..teachers import MultiTask, Teacher, mix_tasks
from ..worlds import World, WorldFactory
from .beginning import initial_model_folder
from .data_size import chosen_settings, left_to_size
from .preprocessing import preprocessing_of
from .reading_bar import reading_bar
from .stores import Building, Built, Stores, keep, load_kept
from .trained_model import load_agent, open_model

# Samples of examples and candidates are the same for all seeds of the training, so that runs can be
# compared.
EVALUATION_SEED = 0
# Sections that configs of saved models may contain, and that do not affect the model.
OF_EARLIER_VERSIONS = ("hogwild",)


class Experiment:
    """Hold all objects that a config describes, for commands and workers. Building an experiment
    reads no data; put all further work into ``with experiment.working():``.

    checked (CheckedConfig): The config.
    settled (CheckedConfig): The config with numbers instead of "auto", once they are chosen.
    chosen (Dict[str, int]): The chosen numbers, by dotted name.
    code (List[str]): Python files that were imported first.
    meta (Dict[str, Any]): The saved model's ``meta.json``; empty for a config.
    seed (int): Seed of all random draws.
    tasks (Dict[str, Teacher]): The tasks, by name.
    agent (Agent): The agent of ``[agent]``.
    tokenizer (Optional[Tokenizer]): The tokenizer of ``[tokenizer]``, which is still empty unless
        the agent was loaded.
    training, mixture, evaluation (Dict[str, Any]): Settings and objects of these sections.
    optimizer (Optimizer): The optimizer of ``[training.optimizer]``.
    loader (Dict[str, Any]): Settings of ``[loader]``.
    readers (Readers): The worker processes of ``[loader]``, which run until they are closed.
    stores (Optional[Stores]): The stores of ``[loader] store``; teachers read from them after
        ``use_examples``.
    runner (Runner): The runner of ``[runner]``.
    baselines (Dict[str, Agent]): The baselines, by name.
    has_own_data (bool): Whether its tasks read other data than the config says, so that worker
        processes cannot read the same data.
    RAISES (ConfigError): If a registered function refuses its arguments.
    """

    def __init__(self, checked: CheckedConfig, code: CodeLike = None):
        self.checked, self.code = checked, code_files(code)
        self.meta: Dict[str, Any] = {}
        self.settled = checked
        self.chosen: Dict[str, int] = {}
        self.ops = get_current_ops()
        parts = resolve_config(checked)
        self.seed: int = parts["system"]["seed"]
        self.tasks: Dict[str, Teacher] = parts["tasks"]
        for name, task in self.tasks.items():
            task.set_name(name)
        self.agent: Agent = parts["agent"]
        self.classes = Spellings() if self.agent.has_classes else None
        self.tokenizer: Any = parts["tokenizer"]
        self._make_world: WorldFactory = parts["world"]
        self.training: Dict[str, Any] = parts["training"]
        self.mixture: Dict[str, Any] = parts["mixture"]
        self.evaluation: Dict[str, Any] = parts["evaluation"]
        self.optimizer: Any = self.training["optimizer"]
        self.loader: Dict[str, Any] = parts["loader"]
        workers, method = self.loader["workers"], self.loader["start_method"]
        self.readers = Readers(workers, method, self.code)
        for task in self.tasks.values():
            task.read_with(self.readers if workers else None, self._encoding)
        window, root = self.loader["shuffle_window"], self.loader["store"]
        for task in self.tasks.values() if window is not None else ():
            task.set_shuffle_window(window, is_stored=root is not None)
        self.runner: Any = parts["runner"]
        self.baselines: Dict[str, Agent] = parts["baselines"]
        self.has_own_data = False
        n_ranked = max([RANKED, *(metric.n_ranked for metric in self.evaluation["metrics"])])
        for agent in (self.agent, *self.baselines.values()):
            agent.n_ranked = n_ranked
        preprocessing = preprocessing_of(checked, self.agent)
        self.stores = None if root is None else Stores(Path(root), self, preprocessing)

    @property
    def ops_name(self) -> str:
        """Name of the ops in use: "numpy", "fast" or "cupy"."""
        return self.ops.name.removeprefix("thincdialog_")

    def _encoding(self) -> Optional[Encoding]:
        encoder = self.agent.text_encoder
        return None if encoder is None else encoder.encoding

    @classmethod
    def from_config(
        cls,
        config: Union[ConfigLike, CheckedConfig],
        overrides: Overrides = None,
        code: CodeLike = None,
        *,
        on_cpu: bool = False,
    ) -> "Experiment":
        """Build an experiment from a config.

        config (ConfigLike): Path of a config, its text, a Config, or a dict of its sections.
        overrides (Optional[Mapping[str, Any]]): "section.key" to value.
        code (CodeLike): Python file or files to import first; they may register functions that the
            config names.
        on_cpu (bool): Whether to build all objects on the CPU, even if the config names a GPU; used
            to inspect data.
        RAISES (ConfigError): If the config has problems; lists all of them.
        """
        load_code(code)
        checked = load_config(config, overrides or {})
        # PyTorch modules draw their initial weights when they are built.
        fix_random_seed(checked.interpolated["system"]["seed"])
        with using_ops(get_dialog_ops() if on_cpu else training_ops(checked)):
            return cls(checked, code)

    @classmethod
    def from_model(
        cls, folder: PathLike, overrides: Overrides = None, code: CodeLike = None
    ) -> "Experiment":
        """Build an experiment from a saved model and load its agent, which can answer but cannot be
        trained further.

        folder (Union[str, Path]): Folder of the model; or folder of a run, to load its best model.
        overrides (Optional[Mapping[str, Any]]): Config settings to change, by their dotted names.
        code (CodeLike): Python file or files that register functions named in the config.
        RAISES (DialogError): If the folder is not a complete saved model.
        """

        def load() -> "Experiment":
            path = model_folder(folder)
            meta, checked = open_model(path, overrides, code, without=OF_EARLIER_VERSIONS)
            with using_ops(ops_to_answer(checked.interpolated["system"])):
                experiment = cls(checked, code)
                load_agent(experiment.agent, path, experiment.tokenizer)
            experiment.prefer_classes()
            experiment.meta = meta
            return experiment

        return read_consistently(folder, load)

    def prefer_classes(self) -> None:
        """Take the spelling of the loaded agent's classes as the right one."""
        if self.classes is not None:
            self.classes.accept(self.agent.classes, Place("a class of the model"))

    @contextmanager
    def working(self) -> Iterator[None]:
        """Use the device that the config names in the block. Data is read in the form that the
        agent needs, and errors without a file name get the name of the config."""
        # Overflow ends in an error that names the examples, so NumPy's warning is not needed.
        errors = numpy.errstate(over="ignore", invalid="ignore", divide="ignore")
        reading = tolerating(
            outside_labels=self.agent.ignore_bad_candidates,
            empty_labels=self.agent.has_label_sets,
            classes=self.classes,
            needs_text=getattr(self.agent, "collate", self) is None,
        )
        n_frozen = gc.get_freeze_count()
        with using_ops(self.ops), errors, reading:
            try:
                yield
            except ConfigError as error:
                raise ConfigError(error.problems, self.checked.name) from error
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                # Errors of batches and of steps are explained where they are raised.
                text = "the arrays of [agent.model] and [training.optimizer]. Set a smaller width "
                text += "or vocabulary, or use the CPU (--gpu-id -1)."
                raise gpu_memory_error(text) from error
            finally:
                if gc.get_freeze_count() > n_frozen:
                    gc.unfreeze()  # ``Split.store`` has frozen data of many examples.

    def bad_data(self) -> Dict[str, BadData]:
        """Return the skipped data, by file, of the files that were read so far."""
        return {
            bad.path: bad
            for task in self.tasks.values()
            for split in task.splits
            for bad in task.data[split].bad_data()
        }

    def left_out(self) -> Dict[str, int]:
        """Return the number of skipped conversations or examples, by file."""
        counts = ((path, bad.n_skipped + bad.n_without) for path, bad in self.bad_data().items())
        return {path: count for path, count in counts if count}

    @property
    def learner(self) -> Learner:
        """The agent, if it can be trained.

        RAISES (ConfigError): If the agent has no weights to train.
        """
        if not self.agent.learns:
            text = f"[agent] '{self.agent.id}' has no weights to train"
            hint = "choose an agent with a model, such as thincdialog.Ranker.v1"
            raise self.checked.error(text, hint, "agent")
        return cast(Learner, self.agent)

    def make_world(self, teacher: Teacher, agent: Agent) -> World:
        """Make the world of ``[world]``, in which a teacher and an agent meet.

        RAISES (ConfigError): If the world does not suit the agent, or cannot train.
        """
        return self._make("world", self._make_world, teacher, agent)

    def make_evaluation_world(self, teacher: Teacher, agent: Agent) -> World:
        """Make the world of ``[evaluation.world]``, as ``make_world`` does."""
        return self._make("evaluation.world", self.evaluation["world"], teacher, agent)

    def _make(self, section: str, make: WorldFactory, teacher: Teacher, agent: Agent) -> World:
        try:
            return make(teacher, agent)
        except ProtocolError as error:
            text = f"[{section}] cannot be used: {error}"
            raise self.checked.error(text, "", section) from error

    def choose(self, teacher: Teacher) -> None:
        """Replace "auto" in the config by numbers that suit the size of the training data.

        teacher (Teacher): Teacher of the training data.
        """
        names = left_to_size(self.checked.interpolated)
        if names:
            self.chosen = chosen_settings(names, teacher.n_examples, self.agent.has_classes)
            self.settled = load_config(self.checked, self.chosen)
            self._make_world = build_block(self.settled, "world")
            self.training["min_steps"] = self.settled.interpolated["training"]["min_steps"]

    def initialize(self, teacher: Teacher, stderr: TextIO, building: Building = "new") -> None:
        """Initialize the agent's vocabulary, classes and weights. On a terminal, show the number of
        texts read.

        teacher (Teacher): Teacher of the training data.
        stderr (TextIO): Stream for the progress and for lines about the initial weights.
        building (str): "none" to not save a built tokenizer with the stores.
        RAISES (DialogError): If the model of ``[training] init_from`` cannot be used.
        """
        self.choose(teacher)
        name = self.checked.interpolated["training"]["init_from"]
        place = self._tokenizer_folder(teacher) if name is None else None
        shapes: List[Any] = []
        with reading_bar(stderr) as progress:
            known = {"tokenizer": self.tokenizer, "seed": self.seed, "progress": progress}
            if name is None:
                is_kept = place is not None and load_kept(self.tokenizer, place)
                self.agent.initialize(teacher, **known)
                check_attributes(self.agent)
                is_built = place is not None and self.agent.text_encoder is not None
                if place is not None and is_built and not is_kept and building != "none":
                    keep(self.tokenizer, place)
            else:
                head = read_consistently(
                    name, lambda: self._initialize_from(teacher, known, shapes)
                )
                check_attributes(self.agent)
        odd = frozenset(filter(is_null_like, self.agent.classes))
        if odd:
            count = sum(label in odd for label in teacher.all_labels())
            text = f"{count:,} training labels may be missing values, and become classes: "
            stderr.write(f"{text}{', '.join(map(repr, sorted(odd)))}\n")
        lines = list(self.learner.beginning) if self.agent.learns else []
        if name is not None:
            lines = [head, *(f"  {line}" for line in lines)]
        stderr.writelines(f"{line}\n" for line in lines)

    def _initialize_from(self, teacher: Teacher, known: Dict[str, Any], shapes: List[Any]) -> str:
        """Initialize the agent from the saved model. Called again if the model is replaced while it
        is read.

        shapes (List[Any]): Shapes of the weights in the models read so far; the new model's are
            appended.
        RETURNS (str): A line that names the model.
        RAISES (DialogError): If the agent cannot use the model.
        """
        folder = initial_model_folder(self.checked)
        assert folder is not None
        if (folder / "layout.json").exists():  # Custom learners may have none.
            shapes.append(saved_shapes(folder))
        if shapes[1:] and shapes[0] != shapes[-1]:
            # The agent's weights are allocated by now.
            text = "was replaced by a model of other sizes while it was read. Try again."
            raise ModelError(f"{folder}  {text}")
        try:
            self.learner.initialize_from(folder, teacher, **known)
            return f"Starting from {folder} ({read_meta(folder).get('agent')}):"
        except (OSError, LookupError, ModelError) as error:
            problem = self._foreign_model_error(folder, error)
            if problem is None:
                raise
            raise problem from error

    def _tokenizer_folder(self, teacher: Teacher) -> Optional[Path]:
        """Return the folder of a tokenizer that is built from stores, next to the stores; None if
        no tokenizer is built, or if it cannot be saved."""
        if self.stores is None or self.tokenizer is None or not self.tokenizer.needs_texts:
            return None
        if type(self.tokenizer).to_disk is Tokenizer.to_disk:
            return None  # A custom tokenizer, which cannot be saved.
        settings = self.checked.interpolated["tokenizer"]
        # A mixture leaves out tasks of weight 0; a single task has no name there.
        shown, trained = teacher.by_task(), self._tasks_with("train")
        names = [name for name in trained if name in shown] or list(trained)
        return self.stores.tokenizer_place(settings, names)

    def use_examples(self, stderr: TextIO, building: Building = "new") -> List[Built]:
        """Read examples from the stores, if the config names a folder for them. Call this before
        the data is used (see ``Stores``)."""
        return [] if self.stores is None else self.stores.use_examples(stderr, building)

    def use_tokens(self, stderr: TextIO, building: Building = "new") -> List[Built]:
        """Make the initialized agent read tokens from the stores."""
        if self.stores is None:
            return []
        return self.stores.use_tokens(self.agent.text_encoder, stderr, building)

    def encode_ahead(self, teachers: Sequence[Teacher], stderr: TextIO) -> None:
        """Compute the vectors of all texts with a frozen encoder, if there is one, and show
        progress on a terminal.

        teachers (Sequence[Teacher]): Teachers of the splits that will be used.
        stderr (TextIO): Stream for the progress.
        RAISES (OutputError): If the vectors cannot be written to disk.
        """
        encoder = self.agent.text_encoder
        if encoder is not None and isinstance(self.agent, Learner):
            texts = chain.from_iterable(teacher.texts() for teacher in teachers)
            with reading_bar(stderr, "Encoding") as progress:
                encode_ahead(self.agent.model, encoder.tokenizer, texts, progress)

    def _foreign_model_error(self, folder: Path, error: Exception) -> Optional[ModelError]:
        """Make the error for an agent without its own ``initialize_from`` that cannot read the
        files of another agent's model; None if that is not the cause."""
        own, saved = self.checked.interpolated["agent"]["@agents"], read_meta(folder).get("agent")
        if own == saved or type(self.learner).initialize_from is not Learner.initialize_from:
            return None
        text = f"{folder}  is a model of {saved}, which {own} cannot read"
        text += f" ({error_line(error)})"
        return ModelError(f"{text}. Start from a model of {own}, or define initialize_from().")

    # --- splits ---------------------------------------------------------------------------

    def has_split(self, split: str) -> bool:
        """Return whether any task has data for a split."""
        return any(split in task.splits for task in self.tasks.values())

    def check_data(self, split: str = "train") -> None:
        """Check that a split has data, and that all files exist.

        RAISES (DataError): If the split has no data, or a file is missing.
        """
        self._tasks_with(split)
        for task in self.tasks.values():
            task.check_sources()

    def undefined_scores(self, report: Mapping[str, float]) -> Dict[str, str]:
        """Return the names in a report whose values are nan. The value is the name in quotes,
        followed by the file and line of the custom metric that computes it, if there is one."""
        found = [name for name, value in report.items() if value != value]
        places = {
            name: f" ({place_of(type(metric).report)})"
            for metric in (self.metrics if found else ())
            if is_users(type(metric).report)
            for name in metric.fresh().report()
        }
        return {name: f"'{name}'{places.get(name.rpartition('/')[2], '')}" for name in found}

    def _tasks_with(self, split: str) -> Dict[str, Teacher]:
        """Return the tasks that have a split, by name.

        RAISES (DataError): If no task has it.
        """
        found = {name: task for name, task in self.tasks.items() if split in task.splits}
        if found:
            return found
        known = {name: ", ".join(task.splits) or "none" for name, task in self.tasks.items()}
        paths = self.checked.interpolated["paths"]
        remedy = f"Give it with --paths.{split} FILE" if split in paths else "Set it there"
        if self.meta:  # Evaluating a saved model allows another split.
            others = {other for task in self.tasks.values() for other in task.splits}
            ready = [f"--split {other}" for other in ("dev", "test", "train") if other in others]
            remedy += f", or use {ready[0]}" if ready else ""
        if len(known) == 1:
            ((name, splits),) = known.items()
            raise DataError(f"[tasks.{name}]", f"has no {split} data (it has: {splits}). {remedy}.")
        each = "; ".join(f"{name} has: {splits}" for name, splits in known.items())
        raise DataError("[tasks]", f"none of them has {split} data ({each}). {remedy}.")

    def unused_weights(self) -> List[str]:
        """Return the tasks that have a weight in ``[mixture.weights]``, but no training data."""
        weights = self.mixture["weights"] or {}
        return [
            name
            for name, task in self.tasks.items()
            if weights.get(name) and "train" not in task.splits
        ]

    def split(self, split: str, *, whole: bool = False, **settings: Any) -> Teacher:
        """Return a teacher of a split: that of the only task, or a mixture of the tasks that have
        the split. The training split is mixed as ``[mixture]`` says, other splits by their sizes.

        split (str): "train", "dev" or "test".
        whole (bool): Whether to mix the training split by size, too, so that no task is left out.
        **settings (Any): Arguments of ``Teacher.for_split`` for each task.
        RAISES (DataError): If the split has no data, or if every task with data has weight 0.
        """
        tasks = self._tasks_with(split)
        if len(self.tasks) == 1:
            ((_, task),) = tasks.items()
            return task.for_split(split, **settings)
        mixture = dict(self.mixture) if split == "train" and not whole else {}
        if mixture.get("weights") is not None:
            mixture["weights"] = weights = {name: mixture["weights"][name] for name in tasks}
            if not any(weights.values()):
                text = f"are 0 for all tasks that have training data ({', '.join(tasks)})"
                raise DataError("[mixture.weights]", text)
        shown = {name: task.for_split(split, **settings) for name, task in tasks.items()}
        # A single remaining task of several keeps its name.
        return mix_tasks(shown, **mixture) if len(shown) > 1 else MultiTask(shown)

    def training_split(self, *, with_metrics: bool = True) -> Teacher:
        """Return the teacher of the training data, in the order of training.

        with_metrics (bool): Whether to score replies, which takes some microseconds for each.
        """
        teacher = self.split("train", training=True)
        if not with_metrics:
            teacher.set_metrics([])
        return teacher

    def evaluation_problems(self) -> List[Problem]:
        """Return a problem if two metrics report the same name, or if ``n_candidates`` is 1, or is
        set although the agent would not choose from these candidates."""
        reporting = {"examples": "the evaluation itself"}
        for metric in self.metrics:
            title = type(metric).__name__
            for name in metric.fresh().report():
                if name in reporting:
                    text = f"[evaluation.metrics] '{name}' is reported by {reporting[name]}"
                    hint = "leave one of them out, or choose another name in its report()"
                    at = self.checked.where("evaluation", "metrics")
                    return [Problem(at, f"{text} and by {title}", hint)]
                reporting[name] = title
        n = self.evaluation["n_candidates"]
        if n == 1:
            text = "[evaluation] n_candidates = 1: the label would be the only candidate"
            at = self.checked.where("evaluation", "n_candidates")
            return [Problem(at, text, "use 2 or more, or 0 for the candidates of the data")]
        if not n or self.agent.uses_candidates:
            return []
        text = f"[evaluation] n_candidates = {n}, but [agent] eval_candidates overrides it"
        hint = "use one of them: leave out eval_candidates, or set n_candidates = 0"
        return [Problem(self.checked.where("evaluation", "n_candidates"), text, hint)]

    def evaluation_split(
        self, split: str, *, with_metrics: bool = True, max_examples: Optional[int] = None
    ) -> Teacher:
        """Return a teacher of a split with the settings of ``[evaluation]``, for the whole and for
        each task.

        split (str): "train", "dev" or "test".
        with_metrics (bool): Whether to score replies.
        max_examples (Optional[int]): Maximum number of examples; that of the config if None.
        RAISES (ConfigError): If the config sets two kinds of candidates at once, or if two metrics
            report the same name.
        RAISES (DataError): If the split has no data.
        """
        problems = self.evaluation_problems()
        if problems:
            raise ConfigError(problems, self.checked.name)
        settings = self.evaluation
        most = settings["max_examples"] if max_examples is None else max_examples
        n_candidates = settings["n_candidates"]
        teacher = self.split(
            split, whole=True, max_examples=most, n_candidates=n_candidates, seed=EVALUATION_SEED
        )
        metrics = self.metrics if with_metrics else []
        # Set the metrics of the whole, too, for worlds that users build themselves.
        for task in (teacher, *teacher.by_task().values()):
            task.set_metrics([metric.fresh() for metric in metrics])
        return teacher

    @property
    def metrics(self) -> Sequence[ExampleMetric]:
        """The metrics of the config. If the agent replies with classes, accuracy compares labels
        exactly (unless the config normalises them), and the F1 of classes is added. If it has sets
        of labels, metrics that compare with a single label are left out."""
        metrics: List[ExampleMetric] = self.evaluation["metrics"]
        if self.agent.has_label_sets:
            return [each for each in metrics if each.compares_sets] or [LabelSets()]
        if not self.agent.has_classes:
            return metrics
        found = [_exact(metric) for metric in metrics]
        return found if any(isinstance(each, ClassF1) for each in found) else [*found, ClassF1()]


def _exact(metric: ExampleMetric) -> ExampleMetric:
    is_open = isinstance(metric, Accuracy) and metric.normalize is None
    return Accuracy(normalize=False) if is_open else metric


def training_ops(checked: CheckedConfig) -> Any:
    """Return the ops that a config asks for.

    RAISES (ConfigError): If they need a package that is not installed.
    RAISES (DialogError): If the config asks for a GPU, and CuPy or the GPU is missing.
    """
    problems = missing_for_ops(checked)
    if problems:
        raise ConfigError(problems, checked.name)
    system = checked.interpolated["system"]
    return get_dialog_ops(system["gpu_id"], system["ops"])


def missing_for_ops(checked: CheckedConfig) -> List[Problem]:
    """Return a problem if the ops of a config need a package that is not installed."""
    system = checked.interpolated["system"]
    if system["gpu_id"] >= 0 or system["ops"] != "fast":
        return []
    try:
        load_kernels("rows")
    except MissingPackageError:
        error = MissingPackageError("numba", "fast", '[system] ops = "fast"')
        return [Problem(checked.where("system", "ops"), f'{error}, or set ops = "numpy"')]
    return []
