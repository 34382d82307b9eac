"""The learning-rate range test: which rates the model learns at.

SOURCE: Smith 2017, Cyclical learning rates for training neural networks,
https://arxiv.org/abs/1506.01186, section 3.3
"""

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, TextIO, Tuple

import numpy as np

from ..config import ConfigLike
from ..errors import ConfigError, DialogError, NothingToLearnError, Problem, TrainingError
from ..training.experiment import CodeLike, Overrides
from .trial import Trial, prepared

# Width of the bell that smooths the curve, as a share of all steps.
SMOOTHING = 0.03
# Losses whose mean tells whether training diverges.
RECENT = 3
# Chance makes smoothed values differ by this many times their noise at most, or nearly.
CLEARLY = 6.0
# The loss turns upwards where it has lost this share of its fall again, or lies above
# the lowest by this share of that.
LOST = 0.1
ABOVE_LOWEST = 0.25
# Share of its fall that is most of it.
MOST = 0.7
# Below the rate at which the loss turns upwards by this factor at least lies the suggestion.
BELOW_TURN = 10.0


@dataclass(frozen=True)
class LearnRates:
    """Outcome of ``find_lr``.

    learn_rates (List[float]): Of each step, rising.
    losses (List[float]): Mean loss of each step's batch, before its update.
    smoothed (List[float]): The same, smoothed without lag.
    stopped_because (str): Why it ended, as a phrase for the user.
    diverged (bool): Whether the loss ran off.
    turn (Optional[float]): Rate from which on the smoothed loss rises, if it does.
    fallen (Optional[float]): Rate at which most of the smoothed loss's fall is done.
    suggestion (Optional[float]): A rate to train with; None if nothing was learnt.
    why (str): How the suggestion was found, as a sentence for the user.
    """

    learn_rates: List[float]
    losses: List[float]
    smoothed: List[float]
    stopped_because: str
    diverged: bool
    turn: Optional[float]
    fallen: Optional[float]
    suggestion: Optional[float]
    why: str


def find_lr(
    config: ConfigLike,
    *,
    start: float = 1e-6,
    end: float = 1.0,
    steps: int = 100,
    overrides: Overrides = None,
    code: CodeLike = None,
    stderr: Optional[TextIO] = None,
) -> LearnRates:
    """Train for a few steps while the learning rate rises exponentially, and suggest one
    by the losses. Everything else is as in training: agent, batches, optimizer; nothing
    is written. A schedule of the learning rate is replaced, those of other settings run. An
    epoch's last batch, if it is smaller than the others, is left out.

    start (float): Rate of the first step, above 0.
    end (float): Rate of the last step, above ``start``.
    steps (int): Number of steps, 10 or more.
    overrides (Optional[Mapping[str, Any]]): "section.key" to value.
    code (CodeLike): Python file to import first, or several.
    stderr (Optional[TextIO]): Where to show that texts are read; sys.stderr if None.
    RETURNS (LearnRates): The curve and the suggestion.
    RAISES (DialogError): If config, data or arguments cannot be used.
    """
    if not 0.0 < start < end < float("inf"):
        raise DialogError(f"the rates go from {start:g} to {end:g}: they should rise, from above 0")
    if steps < 10:
        raise DialogError(f"steps = {steps}: fewer than 10 make no curve")
    rates = np.geomspace(start, end, steps).tolist()
    with prepared(config, overrides, code, stderr) as trial:
        if not hasattr(trial.optimizer, "learn_rate"):
            where = trial.checked.where("training", "optimizer")
            text = f"[training.optimizer] a {type(trial.optimizer).__name__} has no learn_rate"
            raise ConfigError([Problem(where, text, "use Adam.v1 or thincdialog.LazyAdam.v1")])
        losses, diverged = _losses(trial, rates)
    return judge(rates[: len(losses)], losses, diverged, steps)


def _losses(trial: Trial, rates: List[float]) -> Tuple[List[float], bool]:
    """The loss of each step, and whether it ran off; then the rest is missing."""
    optimizer, agent = trial.optimizer, trial.agent
    schedules: Dict[str, Any] = getattr(optimizer, "schedules", {})
    schedules.pop("learn_rate", None)
    losses: List[float] = []
    gathered = trial.steps()
    for rate in rates:
        try:
            # The rest of an epoch has no place on the curve: a label is easier to tell from the
            # few others of a small batch.
            while next(gathered):
                agent.give_up()
            optimizer.learn_rate = rate
            losses.append(agent.gathered_loss())
            agent.update(optimizer)
        except NothingToLearnError:
            raise
        except TrainingError:
            return losses, True
        if _runs_off(losses):
            return losses, True
    return losses, False


def _runs_off(losses: List[float]) -> bool:
    """Whether the loss is at least twice the lowest so far and above that of a model
    that has learnt nothing; each a mean of a few steps."""
    if len(losses) < 2 * RECENT:
        return False
    means = np.convolve(losses, np.ones(RECENT) / RECENT, "valid")
    return bool(means[-1] > means[0] and means[-1] > 2 * means.min())


def judge(rates: List[float], losses: List[float], diverged: bool, steps: int) -> LearnRates:
    """Smooth the curve and suggest a rate.

    rates (List[float]): As many as losses.
    diverged (bool): Whether the loss ran off after the last of them.
    steps (int): How many there would have been.
    RETURNS (LearnRates): With the suggestion.
    """
    reason = f"the loss ran off at {rates[-1]:.2g}" if diverged and rates else "all rates tried"
    if len(losses) < RECENT:
        why = f"{reason}, at once: begin with a lower --start."
        return LearnRates(rates, losses, list(losses), reason, diverged, None, None, None, why)
    width = max(1.0, SMOOTHING * steps)
    # One that ran off must not lift the values before it.
    clipped = np.minimum(losses, 2 * np.mean(losses[:RECENT]))
    # Weighted means around each value: no lag, unlike a running mean.
    places = np.arange(len(clipped))
    weights = np.exp(-0.5 * ((places[:, None] - places[None, :]) / width) ** 2)
    smoothed: np.ndarray = weights @ clipped / weights.sum(axis=1)
    lowest = int(smoothed.argmin())
    calm = slice(None, max(lowest + 1, len(losses) // 4))
    # Of a smoothed value: each is the mean of some 3.5 widths of the bell.
    noise = float(np.std((clipped - smoothed)[calm])) / (3.5 * width) ** 0.5
    # The first rates are meant to be too low to learn anything.
    fell = float(smoothed[: max(RECENT, len(losses) // 10)].mean() - smoothed[lowest])
    # Well in the fall. (Where in it the slope is steepest, noise decides.)
    is_above = smoothed[: lowest + 1] >= smoothed[lowest] + (1 - MOST) * fell
    # Nothing is above in a curve that rises from its begin on.
    before_fall = np.flatnonzero(is_above)
    fallen = rates[int(before_fall[-1])] if len(before_fall) else rates[0]
    margin = max(CLEARLY * noise, min(LOST * fell, ABOVE_LOWEST * float(smoothed[lowest])))
    rises = np.flatnonzero(smoothed[lowest:] > smoothed[lowest] + margin)
    turn = rates[lowest + int(rises[0])] if len(rises) else rates[-1] if diverged else None
    suggestion: Optional[float] = None
    if not lowest or not len(before_fall) or fell <= CLEARLY * noise:
        why = (
            "The loss did not fall clearly at any rate, so nothing can be suggested: try more "
            "--steps, or larger batches."
        )
    elif turn is not None and turn / BELOW_TURN < fallen:
        suggestion = _round(turn / BELOW_TURN)
        why = f"A tenth of {turn:.2g}, where the loss turns upwards."
    else:
        suggestion = _round(fallen)
        why = "There most of the loss's fall was done. " + (
            f"It turns upwards at {turn:.2g}."
            if turn is not None
            else "It does not rise again: a higher --end may show where."
        )
    found = (reason, diverged, turn, None if suggestion is None else fallen, suggestion, why)
    return LearnRates(rates, losses, smoothed.tolist(), *found)


def _round(rate: float) -> float:
    """To two digits: no more can be known."""
    return float(f"{rate:.1e}")
