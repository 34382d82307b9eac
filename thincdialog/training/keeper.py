"""The interface through which the training loop saves models and checkpoints."""

from typing import Any, Mapping

from .progress import Position


class Keeper:
    """Keeps nothing; the base of those that do.

    newest (str): The checkpoint to resume from, or "" if there is none.
    """

    newest = ""

    def evaluated(self, position: Position, report: Mapping[str, float], is_best: bool) -> None:
        """Keep the agent's current weights; they were just evaluated."""

    def left(self, position: Position) -> None:
        """Keep the agent's current weights: training is interrupted before their evaluation."""

    def checkpoint(self, step: int, state: Mapping[str, Any]) -> None:
        """Keep a checkpoint, from which training can resume.

        state (Mapping[str, Any]): State of the loop, as JSON values, for its ``restore``.
        """
