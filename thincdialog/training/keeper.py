"""The interface through which the training loop saves models and checkpoints."""

from typing import Any, Mapping

from .progress import Position


class Keeper:
    """Base of keepers, which save models and checkpoints; it saves nothing.

    newest (str): Folder of the checkpoint to resume from; "" if there is none.
    """

    newest = ""

    def evaluated(self, position: Position, report: Mapping[str, float], is_best: bool) -> None:
        """Save the agent's current weights, which were just evaluated."""

    def left(self, position: Position) -> None:
        """Save the agent's current weights, which were not evaluated because training was
        interrupted."""

    def checkpoint(self, step: int, state: Mapping[str, Any]) -> None:
        """Save a checkpoint to resume training from.

        step (int): Number of steps so far.
        state (Mapping[str, Any]): State of the loop, as JSON values, for its ``restore``.
        """
