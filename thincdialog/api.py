"""Everything public, in one place: ``from thincdialog.api import train, registry``."""

from pathlib import Path
from typing import Any, Mapping, Optional, Union

from .agents import Conversation, ConversationAgent, ModelAgent

# The batcher Words stays in thincdialog.batchers: a tokenizer has the same name.
from .batchers import Batcher, Batchsort, Fixed, Lengths, Padded, Sizes
from .callbacks import Callback
from .config import CheckedConfig, CodeLike, check_config, load_config, resolve_config, write_config
from .config.diff import Difference, diff_config
from .data import TextEncoder, Tokenizer
from .errors import (
    ConfigError,
    DataError,
    DialogError,
    MissingPackageError,
    ModelError,
    OutputError,
    Problem,
    ProtocolError,
    TrainingError,
    WorkerError,
)
from .evaluation.comparison import Comparison, MetricDifference, compare
from .evaluation.detail import Evaluation, evaluate_in_detail
from .evaluation.evaluate import evaluate
from .evaluation.predict import Answers, predict
from .evaluation.predictions import Prediction
from .evaluation.predictions_file import read_predictions, write_predictions
from .evaluation.results import Result
from .examples import Batch, MemoryStore, Store
from .formats.convert import Conversion, convert
from .inspection.data_report import DataReport, DataWarning, Limits
from .inspection.debug_data import debug_data
from .inspection.debug_overfit import Overfit, debug_overfit
from .inspection.debug_profile import Profile, debug_profile
from .inspection.display import display_data, display_model
from .inspection.dry_run import DryRun, dry_run
from .inspection.find_lr import LearnRates, find_lr
from .loggers.logger import LoggedRun, Progress
from .messages import PARTNER, SELF, Message, MessageBatch, Turn
from .metrics import AverageMetric, ExampleMetric, Metric, SumMetric
from .models.parameters import FlatParameters
from .plotting.plot import plot
from .protocol import Agent, Learner, ReadingOptions, StepReport
from .registry import registry
from .runners import Alone
from .runs.chatbot import Answer, Chatbot
from .runs.model_folder import save
from .runs.run_table import RunResult, results
from .runs.sweep import Sweep, SweepRun, sweep
from .runs.train import train
from .teachers import IterableTeacher, MultiTask, Teacher, mix_tasks
from .training.experiment import Experiment
from .training.interruption import Interrupted, Interruption
from .training.runner import Runner
from .worlds import (
    BatchWorld,
    DynamicBatchWorld,
    MultiAgentWorld,
    PartnerWorld,
    World,
)


def load(
    path: Union[str, Path],
    *,
    overrides: Optional[Mapping[str, Any]] = None,
    code: CodeLike = None,
) -> Chatbot:
    """Load a saved model to talk to; see ``Chatbot``.

    path (Union[str, Path]): Its folder, such as "output/quickstart/model-best"; or that of a
        run, for its best model.
    overrides (Optional[Mapping[str, Any]]): Changes to its config.
    code (CodeLike): Python file, or several, registering what its config names.
    RAISES (DialogError): If the folder is not a whole saved model.
    """
    return Chatbot(path, overrides=overrides, code=code)


__all__ = [
    "PARTNER", "SELF", "Agent", "Alone", "Answer", "Answers", "Batch", "Experiment", "Learner",
    "MemoryStore",
    "ReadingOptions", "Runner", "StepReport", "Store", "AverageMetric", "BatchWorld", "Batcher",
    "Batchsort", "Callback", "CodeLike",
    "Chatbot", "CheckedConfig", "Comparison", "ConfigError", "Conversation", "ConversationAgent",
    "Conversion", "DataError", "DataReport", "DataWarning", "DialogError", "Difference", "DryRun",
    "DynamicBatchWorld", "Evaluation", "ExampleMetric", "Fixed", "FlatParameters",
    "Interrupted", "Interruption", "IterableTeacher", "LearnRates", "Lengths", "Limits",
    "LoggedRun", "Message", "MessageBatch", "Metric", "MetricDifference",
    "MissingPackageError", "ModelAgent", "ModelError", "MultiAgentWorld",
    "MultiTask", "OutputError", "Overfit", "Padded", "PartnerWorld",
    "Prediction", "Problem", "Profile", "Progress", "ProtocolError",
    "Result", "RunResult", "Sizes", "SumMetric", "Sweep", "SweepRun", "Teacher",
    "TextEncoder", "Tokenizer", "TrainingError", "Turn", "WorkerError", "World",
    "check_config", "compare", "convert", "debug_data", "debug_overfit",
    "debug_profile", "diff_config", "display_data", "display_model", "dry_run", "evaluate",
    "evaluate_in_detail", "find_lr", "load", "load_config", "mix_tasks",
    "plot", "predict", "read_predictions", "registry", "resolve_config", "results", "save",
    "sweep", "train", "write_config", "write_predictions",
]  # fmt: skip
