"""The row of an evaluation, as loggers and callbacks get it."""

from typing import Any, Dict, Mapping, Optional

from .stopping import Position


class Rows:
    """Makes rows; knows how far training was at the one before.

    score_name (str): The metric that is optimised.
    """

    def __init__(self, score_name: str):
        self.score_name = score_name
        self._examples = 0
        self._seconds = 0.0

    def make(
        self,
        position: Position,
        seconds: float,
        report: Mapping[str, float],
        training: Mapping[str, float],
        is_best: bool,
        **more: Any,
    ) -> Dict[str, Any]:
        """The row of an evaluation (see ``loggers/logger.py``).

        seconds (float): Of training.
        report (Mapping[str, float]): What was measured on the dev data.
        training (Mapping[str, float]): What was measured on the training data since the
            last row.
        **more (Any): What else stands in it.
        """
        examples, spent = position.examples - self._examples, seconds - self._seconds
        self._examples, self._seconds = position.examples, seconds

        def rate(count: float) -> Optional[float]:
            return count / spent if examples else None

        return {
            "step": position.step,
            "epoch": position.epoch,
            "examples": position.examples,
            "loss_per_example": training.get("loss"),
            "score_name": self.score_name,
            "score": report.get(self.score_name),
            "scores": dict(report),
            "is_best": is_best,
            "examples_per_second": rate(examples),
            "tokens_per_second": rate(training.get("tokens", 0.0)),
            "padding_fraction": training.get("padding_fraction"),
            "truncated_contexts": training.get("truncated_contexts"),
            "seconds": seconds,
            **more,
        }

    def state(self) -> Dict[str, Any]:
        """How far training was at the last row, as JSON values."""
        return {"examples": self._examples, "seconds": self._seconds}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what ``state`` gave."""
        self._examples, self._seconds = state["examples"], state["seconds"]
