"""``[training]`` as the loop reads it."""

from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional

from ..callbacks import Callback
from ..config import CheckedConfig
from .stopping import Every, Limits


@dataclass
class LoopSettings:
    """``[training]`` as the loop reads it; all limits: 0 = none.

    seed (int): Of the order of the data and of dropout.
    optimizer (Optimizer): Thinc's, or one that is called like it.
    every (Every): When to evaluate.
    every_checkpoint (Every): When to write a checkpoint.
    checkpoint_evaluations (bool): Whether one follows every evaluation, too.
    score (str): Name of the dev metric to optimise.
    score_direction (str): "max", "min", or "auto" to tell from the metric's name.
    accumulate_gradient (int): Microbatches (parleys) for one update of the weights.
    callbacks (Dict[str, Callback]): By their names in the config.
    """

    seed: int
    optimizer: Any
    limits: Limits
    every: Every
    every_checkpoint: Every
    checkpoint_evaluations: bool
    score: str
    score_direction: str = "auto"
    patience: int = 0
    target_score: Optional[float] = None
    accumulate_gradient: int = 1
    callbacks: Dict[str, Callback] = field(default_factory=dict)

    @classmethod
    def of(cls, checked: CheckedConfig, parts: Mapping[str, Any]) -> "LoopSettings":
        """Those of a config.

        checked (CheckedConfig): The config that ``parts`` were built from.
        parts (Mapping[str, Any]): From ``resolve_config``.
        """
        training = parts["training"]
        names = checked.interpolated["training"].get("callbacks", {})
        return cls(
            seed=parts["system"]["seed"],
            optimizer=training["optimizer"],
            limits=Limits(training["max_epochs"], training["max_steps"], training["max_seconds"]),
            every=Every(
                training["eval_every_epochs"],
                training["eval_every_steps"],
                training["eval_every_seconds"],
            ),
            every_checkpoint=Every(
                0.0, training["checkpoint_every_steps"], training["checkpoint_every_seconds"]
            ),
            checkpoint_evaluations=training["checkpoint_evaluations"],
            score=training["score"],
            score_direction=training["score_direction"],
            patience=training["patience"],
            target_score=training["target_score"],
            accumulate_gradient=training["accumulate_gradient"],
            callbacks=dict(zip(names, training["callbacks"])),
        )

    @property
    def has_checkpoints(self) -> bool:
        """Whether there are any, but for that of an interruption."""
        every = self.every_checkpoint
        return bool(self.checkpoint_evaluations or every.steps or every.seconds)
