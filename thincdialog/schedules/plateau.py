"""A learning rate that is lowered when training makes no progress."""

from collections.abc import Generator
from typing import Any, Dict, Mapping

from thinc.optimizers import FloatOrSeq

from ..registry import registry


@registry.schedules("thincdialog.Plateau.v1")
def plateau(
    learn_rate: FloatOrSeq, factor: float = 0.5, patience: int = 3, min_rate: float = 0.0
) -> "Plateau":
    """Lower the rate when evaluations on dev find no better score. `[training] score` names the
    score, as for `[training] patience`, which should be larger than this `patience`.

    learn_rate (float or schedule): The rate before it is lowered.
    factor (float): Factor for each lowering, above 0 and below 1.
    patience (int): Evaluations in a row without a new best score before the rate is lowered, and
        before it is lowered again; 1 or more.
    min_rate (float): The rate is not lowered below this, 0 or more.
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


class Plateau(Generator):  # Thinc's optimizers and config checks expect a generator.
    """Implement ``plateau``. The training loop reports evaluations with ``see``, and ``state``
    returns their effect. The state has no number of steps, because the optimizer counts steps.

    value (float): The rate of the next step.
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
        """Take note of an evaluation.

        is_best (bool): Whether its score is better than all earlier ones.
        """
        self.without_progress = 0 if is_best else self.without_progress + 1
        if self.without_progress == self.patience:
            self.n_lowered, self.without_progress = self.n_lowered + 1, 0

    def state(self) -> Dict[str, Any]:
        """Return the effect of the evaluations, as JSON values."""
        return {"n_lowered": self.n_lowered, "without_progress": self.without_progress}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state from ``state``."""
        self.n_lowered, self.without_progress = state["n_lowered"], state["without_progress"]

    def send(self, value: Any) -> float:
        """Return the rate of the next step."""
        # A schedule that has ended keeps its last rate, which can still be lowered.
        self._rate = float(next(self._rates, self._rate))
        return self.value

    def throw(self, *error: Any) -> Any:
        """Raise the error, because there is nothing to clean up."""
        raise error[0]
