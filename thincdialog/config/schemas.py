"""The sections of a config, with their settings and blocks. ``default_config.cfg`` has the default
of each setting, with an explanation."""

from typing import Any, Dict, List, Literal, NamedTuple, Optional, Union

SECTION_ORDER = (
    "paths", "system", "tasks", "mixture", "tokenizer", "agent", "world", "evaluation",
    "training", "loader", "runner", "baselines",
)  # fmt: skip


class Setting(NamedTuple):
    """Describe a setting of a section.

    annotation (Any): Type of the setting.
    least (Optional[float]): Smallest allowed value.
    """

    annotation: Any
    least: Optional[float] = None


class Blocks(NamedTuple):
    """Describe a section that a registered function builds, or a group of such sections.

    registry (str): Registry of the function.
    is_group (bool): Whether the section holds named blocks, ``[tasks.NAME]``.
    required (bool): Whether a config must have the section.
    """

    registry: str
    is_group: bool = False
    required: bool = False


SETTINGS: Dict[str, Dict[str, Setting]] = {
    "system": {
        "seed": Setting(int, 0),
        "gpu_id": Setting(int, -1),
        "ops": Setting(Literal["auto", "numpy", "fast"]),
    },
    "mixture": {
        "unit": Setting(Literal["episodes", "examples", "words"]),
        "weights": Setting(Optional[Dict[str, float]]),
        "repeat": Setting(bool),
    },
    "evaluation": {
        "max_examples": Setting(int, 0),
        "n_candidates": Setting(int, 0),
    },
    "training": {
        "init_from": Setting(Optional[str]),
        "max_epochs": Setting(float, 0),
        "max_steps": Setting(int, 0),
        "min_steps": Setting(Union[int, Literal["auto"]], 0),
        "max_seconds": Setting(float, 0),
        "eval_every_epochs": Setting(float, 0),
        "eval_every_steps": Setting(int, 0),
        "eval_every_seconds": Setting(float, 0),
        "log_every_steps": Setting(int, 0),
        "score": Setting(str),
        "score_direction": Setting(Literal["auto", "max", "min"]),
        "patience": Setting(int, 0),
        "target_score": Setting(Optional[float]),
        "accumulate_gradient": Setting(int, 1),
        "checkpoint_every_steps": Setting(int, 0),
        "checkpoint_every_seconds": Setting(float, 0),
        "checkpoint_evaluations": Setting(bool),
        "n_samples": Setting(int, 0),
    },
    "loader": {
        "store": Setting(Optional[str]),
        "preprocess": Setting(bool),
        "shuffle_window": Setting(Optional[int], 0),
        "workers": Setting(Union[int, Literal["auto"]], 0),
        "start_method": Setting(Optional[Literal["fork", "forkserver", "spawn"]]),
    },
}

BLOCKS: Dict[str, Blocks] = {
    "tasks": Blocks("teachers", is_group=True, required=True),
    "tokenizer": Blocks("tokenizers"),
    "agent": Blocks("agents", required=True),
    "world": Blocks("worlds"),
    "evaluation.world": Blocks("worlds"),
    "evaluation.metrics": Blocks("metrics", is_group=True),
    "training.optimizer": Blocks("optimizers"),
    "training.logger": Blocks("loggers"),
    "training.callbacks": Blocks("callbacks", is_group=True),
    "runner": Blocks("runners"),
    "baselines": Blocks("agents", is_group=True),
}

# Blocks that exist only if the config or an override creates them, and the block that supplies
# their defaults.
OPTIONAL = {"evaluation.world": "world"}

# Blocks that may be null.
EMPTY = ("evaluation.world", "training.callbacks")

# Settings or sections that users may expect elsewhere, and a hint to the right place.
_TRAINING_BATCHES = "batches are set in [world.batcher], as its size or budget"
ELSEWHERE = {
    "training.batch_size": _TRAINING_BATCHES,
    "training.batcher": _TRAINING_BATCHES,
    "evaluation.batch_size": f"{_TRAINING_BATCHES}; for the evaluation alone, in "
    "[evaluation.world.batcher]",
    "evaluation.batcher": "it goes into [evaluation.world.batcher]",
    "hogwild": "take it out if workers is 0; else its settings go into [runner] under "
    '@runners = "thincdialog.Hogwild.v1"',
    "ray": 'its settings go into [runner] under @runners = "thincdialog.Ray.v1"',
}

# A sub-section with free keys, which are names of tasks.
WEIGHTS = "mixture.weights"


def known_keys(section: str) -> List[str]:
    """Return the settings and sub-sections that a section may hold."""
    prefix = f"{section}."
    blocks = [name[len(prefix) :] for name in BLOCKS if name.startswith(prefix)]
    return [*SETTINGS.get(section, ()), *blocks]
