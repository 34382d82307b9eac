"""What the training loop asks to be kept."""

from typing import Any, Mapping

from .progress import Position


class Keeper:
    """Keeps nothing; the base of those that do.

    newest (str): The checkpoint to go on from, or "" if there is none.
    """

    newest = ""

    def evaluated(self, position: Position, report: Mapping[str, float], is_best: bool) -> None:
        """Keep the weights in place; they were just evaluated."""

    def left(self, position: Position) -> None:
        """Keep the weights in place: training is interrupted before their evaluation."""

    def checkpoint(self, step: int, state: Mapping[str, Any]) -> None:
        """Keep all that is needed to go on from here.

        state (Mapping[str, Any]): Of the loop, as JSON values, for its ``restore``.
        """
