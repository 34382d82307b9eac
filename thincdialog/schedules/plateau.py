"""A rate that falls when training makes no progress."""

from collections.abc import Generator
from typing import Any, Dict, Mapping

from thinc.optimizers import FloatOrSeq

from ..registry import registry


@registry.schedules("thincdialog.Plateau.v1")
def plateau(
    learn_rate: FloatOrSeq, factor: float = 0.5, patience: int = 3, min_rate: float = 0.0
) -> "Plateau":
    """Lower the rate when evaluations on dev find nothing better. Best is what `[training]
    score` says, as for its `patience`, which should be larger than this one.

    learn_rate (float or schedule): The rate while nothing was lowered.
    factor (float): What it is multiplied by, above 0 and below 1.
    patience (int): Evaluations in a row without a new best before it is lowered, and before
        it is lowered again; 1 or more.
    min_rate (float): It is not lowered below this, 0 or more.
    RETURNS (Plateau): The rate of each step.
    RAISES (ValueError): If an argument is out of range.
    """
    if not 0.0 < factor < 1.0:
        raise ValueError(f"factor = {factor}, but it must be above 0 and below 1")
    if patience < 1:
        raise ValueError(f"patience = {patience}, but it must be 1 or more (evaluations)")
    if min_rate < 0:
        raise ValueError(f"min_rate = {min_rate}, but it must be 0 or more")
    return Plateau(learn_rate, factor, patience, min_rate)


class Plateau(Generator):  # Thinc's optimizers, and checks of configs, know generators.
    """See ``plateau``. The training loop tells it what evaluations found (``see``); ``state``
    holds what came of that, and no steps: those are counted by the optimizer.

    value (float): The rate of the step to come.
    """

    def __init__(self, learn_rate: Any, factor: float, patience: int, min_rate: float):
        is_fixed = isinstance(learn_rate, (int, float))
        self._rates = iter(()) if is_fixed else iter(learn_rate)
        self._rate = float(learn_rate) if is_fixed else 0.0
        self.factor, self.patience, self.min_rate = factor, patience, min_rate
        self.n_lowered = self.without_progress = 0

    @property
    def value(self) -> float:
        lowered = self._rate * self.factor**self.n_lowered
        return max(lowered, min(self._rate, self.min_rate))

    def see(self, is_best: bool) -> None:
        """There was an evaluation.

        is_best (bool): Whether it was better than all before.
        """
        self.without_progress = 0 if is_best else self.without_progress + 1
        if self.without_progress == self.patience:
            self.n_lowered, self.without_progress = self.n_lowered + 1, 0

    def state(self) -> Dict[str, Any]:
        """What came of evaluations, as JSON values."""
        return {"n_lowered": self.n_lowered, "without_progress": self.without_progress}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what ``state`` gave."""
        self.n_lowered, self.without_progress = state["n_lowered"], state["without_progress"]

    def send(self, value: Any) -> float:
        """The rate of the next step."""
        # One that has ended stays at its last rate, and can still be lowered.
        self._rate = float(next(self._rates, self._rate))
        return self.value

    def throw(self, *error: Any) -> Any:
        """Nothing is to be ended."""
        raise error[0]
