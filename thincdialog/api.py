"""All public names in one place: ``from thincdialog.api import train, registry``.

A name is imported on first access, so importing this module loads neither NumPy nor Thinc.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Union

if TYPE_CHECKING:  # The same names as in ``_MODULES``, for type checkers and editors.
    from .agents import ConversationAgent, Inputs, Judged, ModelAgent

    # The batcher Words stays in thincdialog.batchers: a tokenizer has the same name.
    from .batchers import Batcher, Batchsort, Fixed, Lengths, Padded, Sizes
    from .callbacks import Callback
    from .config import (
        CheckedConfig,
        CodeLike,
        check_config,
        load_config,
        resolve_config,
        write_config,
    )
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
    from .evaluation.evaluate import Evaluation, evaluate, evaluate_in_detail
    from .evaluation.predict import Answers, predict
    from .evaluation.predictions import Prediction
    from .evaluation.predictions_file import read_predictions, write_predictions
    from .evaluation.results import Result
    from .examples import Batch, MemoryStore, Store
    from .formats.convert import Conversion, convert
    from .inspection.data_report import DataReport, DataWarning
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
    from .pretrained.distill import Distilled, distill
    from .protocol import Agent, Learner, ReadingOptions, StepReport
    from .registry import registry
    from .runners import Alone, HogwildWorld
    from .runs.build import build
    from .runs.chatbot import Chatbot
    from .runs.cross_validate import CrossValidation, cross_validate
    from .runs.model_folder import save
    from .runs.run_table import RunResult, results
    from .runs.sweep import Sweep, SweepRun, sweep
    from .runs.train import train
    from .teachers import IterableTeacher, MultiTask, Teacher, mix_tasks
    from .training.experiment import Experiment
    from .training.interruption import Interrupted, Interruption
    from .training.runner import Runner
    from .training.trained_model import Answer, Reply, TrainedModel
    from .worlds import (
        BatchWorld,
        DynamicBatchWorld,
        MultiAgentWorld,
        PartnerWorld,
        World,
    )

# Module to the names that it defines, for imports at run time.
_MODULES = {
    "agents": "ConversationAgent Inputs Judged ModelAgent",
    "batchers": "Batcher Batchsort Fixed Lengths Padded Sizes",
    "callbacks": "Callback",
    "config": "CheckedConfig CodeLike check_config load_config resolve_config write_config",
    "config.diff": "Difference diff_config",
    "data": "TextEncoder Tokenizer",
    "errors": (
        "ConfigError DataError DialogError MissingPackageError ModelError OutputError Problem "
        "ProtocolError TrainingError WorkerError"
    ),
    "evaluation.comparison": "Comparison MetricDifference compare",
    "evaluation.evaluate": "Evaluation evaluate evaluate_in_detail",
    "evaluation.predict": "Answers predict",
    "evaluation.predictions": "Prediction",
    "evaluation.predictions_file": "read_predictions write_predictions",
    "evaluation.results": "Result",
    "examples": "Batch MemoryStore Store",
    "formats.convert": "Conversion convert",
    "inspection.data_report": "DataReport DataWarning",
    "inspection.debug_data": "debug_data",
    "inspection.debug_overfit": "Overfit debug_overfit",
    "inspection.debug_profile": "Profile debug_profile",
    "inspection.display": "display_data display_model",
    "inspection.dry_run": "DryRun dry_run",
    "inspection.find_lr": "LearnRates find_lr",
    "loggers.logger": "LoggedRun Progress",
    "messages": "PARTNER SELF Message MessageBatch Turn",
    "metrics": "AverageMetric ExampleMetric Metric SumMetric",
    "models.parameters": "FlatParameters",
    "plotting.plot": "plot",
    "pretrained.distill": "Distilled distill",
    "protocol": "Agent Learner ReadingOptions StepReport",
    "registry": "registry",
    "runners": "Alone HogwildWorld",
    "runs.build": "build",
    "runs.chatbot": "Chatbot",
    "runs.cross_validate": "CrossValidation cross_validate",
    "runs.model_folder": "save",
    "runs.run_table": "RunResult results",
    "runs.sweep": "Sweep SweepRun sweep",
    "runs.train": "train",
    "teachers": "IterableTeacher MultiTask Teacher mix_tasks",
    "training.experiment": "Experiment",
    "training.interruption": "Interrupted Interruption",
    "training.runner": "Runner",
    "training.trained_model": "Answer Reply TrainedModel",
    "worlds": "BatchWorld DynamicBatchWorld MultiAgentWorld PartnerWorld World",
}
_HOMES: Dict[str, str] = {
    name: module for module, names in _MODULES.items() for name in names.split()
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(f".{_HOMES[name]}", __package__), name)
    return value


def __dir__() -> List[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def load(
    path: Union[str, Path],
    *,
    overrides: Optional[Mapping[str, Any]] = None,
    code: "CodeLike" = None,
) -> "Chatbot":
    """Load a saved model to talk to; see ``Chatbot``.

    path (Union[str, Path]): Folder of the model, such as "output/quickstart/model-best"; or folder
        of a run, to load its best model.
    overrides (Optional[Mapping[str, Any]]): Config settings to change, by their dotted names.
    code (CodeLike): Python file or files that register functions named in the config.
    RAISES (DialogError): If the folder is not a complete saved model.
    """
    from .runs.chatbot import Chatbot

    return Chatbot(path, overrides=overrides, code=code)


__all__ = [
    "PARTNER", "SELF", "Agent", "Alone", "Answer", "Answers", "Batch", "Experiment", "Learner",
    "AverageMetric", "BatchWorld", "Batcher", "Batchsort", "Callback", "Chatbot", "CheckedConfig",
    "CodeLike", "Comparison", "ConfigError", "ConversationAgent", "Conversion",
    "CrossValidation", "DataError", "DataReport", "DataWarning", "DialogError", "Difference",
    "Distilled", "DryRun", "DynamicBatchWorld", "Evaluation", "ExampleMetric", "Fixed",
    "FlatParameters", "HogwildWorld", "Inputs", "Interrupted", "Interruption", "IterableTeacher",
    "Judged", "LearnRates", "Lengths", "LoggedRun", "MemoryStore", "Message",
    "MessageBatch", "Metric", "MetricDifference", "MissingPackageError", "ModelAgent", "ModelError",
    "MultiAgentWorld", "MultiTask", "OutputError", "Overfit", "Padded", "PartnerWorld",
    "Prediction", "Problem", "Profile", "Progress", "ProtocolError", "ReadingOptions", "Reply",
    "Result", "RunResult", "Runner", "Sizes", "StepReport", "Store", "SumMetric", "Sweep",
    "SweepRun", "Teacher", "TextEncoder", "Tokenizer", "TrainedModel", "TrainingError", "Turn",
    "WorkerError", "World", "build", "check_config", "compare", "convert", "debug_data",
    "debug_overfit", "debug_profile", "cross_validate", "diff_config", "display_data",
    "display_model", "distill", "dry_run", "evaluate", "evaluate_in_detail", "find_lr", "load",
    "load_config", "mix_tasks", "plot", "predict", "read_predictions", "registry", "resolve_config",
    "results", "save", "sweep", "train", "write_config", "write_predictions",
]  # fmt: skip
