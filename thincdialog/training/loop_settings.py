"""``[training]`` as the loop reads it."""

from dataclasses import dataclass, field
from typing import Any, Dict, Optional

from ..callbacks import Callback
from .experiment import Experiment
from .progress import Every, Limits


@dataclass
class LoopSettings:
    """``[training]`` as the loop reads it; all limits: 0 = none.

    optimizer (Optimizer): Thinc's, or one that is called like it.
    every (Every): When to evaluate.
    every_checkpoint (Every): When to write a checkpoint.
    checkpoint_evaluations (bool): Whether one follows every evaluation, too.
    score (str): Name of the dev metric to optimise.
    score_direction (str): "max", "min", or "auto" to tell from the metric's name.
    callbacks (Dict[str, Callback]): By their names in the config.
    """

    optimizer: Any
    limits: Limits
    every: Every
    every_checkpoint: Every
    checkpoint_evaluations: bool
    score: str
    score_direction: str = "auto"
    patience: int = 0
    target_score: Optional[float] = None
    callbacks: Dict[str, Callback] = field(default_factory=dict)

    @classmethod
    def of(cls, experiment: Experiment) -> "LoopSettings":
        """Those of a config."""
        training = experiment.training
        names = experiment.checked.interpolated["training"].get("callbacks", {})
        return cls(
            optimizer=experiment.optimizer,
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
            callbacks=dict(zip(names, training["callbacks"])),
        )

    @property
    def has_checkpoints(self) -> bool:
        """Whether there are any, but for that of an interruption."""
        every = self.every_checkpoint
        return bool(self.checkpoint_evaluations or every.steps or every.seconds)
