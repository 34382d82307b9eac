"""The learning-rate range test, which finds the learning rates at which a model learns.

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

# Width of the Gaussian that smooths the curve, as a fraction of all steps.
SMOOTHING = 0.03
# Number of recent losses whose mean decides whether training diverges.
RECENT = 3
# Differences of smoothed values up to this multiple of their noise may be due to chance.
CLEARLY = 6.0
# The loss turns upwards when it rises above its lowest value by this fraction of its fall, or by
# this fraction of the lowest value.
LOST = 0.1
ABOVE_LOWEST = 0.25
# Fraction of the loss's fall that counts as most of it.
MOST_OF_FALL = 0.7
# The suggestion is lower than the rate at which the loss turns upwards by at least this factor.
BELOW_TURN = 10.0


@dataclass(frozen=True)
class LearnRates:
    """Hold the result of ``find_lr()``.

    learn_rates (List[float]): Learning rate of each step, rising.
    losses (List[float]): Mean loss of each step's batch, before its update.
    smoothed (List[float]): The losses, smoothed without lag.
    stopped_because (str): Reason for the end, as a phrase for the user.
    diverged (bool): Whether the loss diverged.
    turn (Optional[float]): Rate at which the smoothed loss begins to rise, if it does.
    fallen (Optional[float]): Rate by which the smoothed loss has fallen most of the way.
    suggestion (Optional[float]): A rate to train with; None if the model learned nothing.
    why (str): Reason for the suggestion, as a sentence for the user.
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
    """Train for a few steps while the learning rate rises exponentially, and suggest a rate from
    the losses. The agent, the batches and the optimizer are the same as in training, but no files
    are written. The schedule of the learning rate is replaced; other schedules are used. The last
    batch of an epoch is left out if it is smaller than the others.

    config (ConfigLike): Path of a config, its text, a Config, or a dict of its sections.
    start (float): Learning rate of the first step, above 0.
    end (float): Learning rate of the last step, above ``start``.
    steps (int): Number of steps, 10 or more.
    overrides (Optional[Mapping[str, Any]]): "section.key" to value.
    code (CodeLike): Python file or files to import first.
    stderr (Optional[TextIO]): Stream for progress; sys.stderr if None.
    RETURNS (LearnRates): The curve and the suggestion.
    RAISES (DialogError): If the config, the data or an argument cannot be used.
    """
    if not 0.0 < start < end < float("inf"):
        raise DialogError(f"start = {start:g}, end = {end:g}: rates should rise from above 0")
    if steps < 10:
        raise DialogError(f"steps = {steps}, expected 10 or more to draw a curve")
    rates = np.geomspace(start, end, steps).tolist()
    with prepared(config, overrides, code, stderr) as trial:
        if not hasattr(trial.optimizer, "learn_rate"):
            where = trial.checked.where("training", "optimizer")
            text = f"[training.optimizer] a {type(trial.optimizer).__name__} has no learn_rate"
            raise ConfigError([Problem(where, text, "use Adam.v1 or thincdialog.LazyAdam.v1")])
        losses, diverged = _losses(trial, rates)
    return judge(rates[: len(losses)], losses, diverged, steps)


def _losses(trial: Trial, rates: List[float]) -> Tuple[List[float], bool]:
    """Return the loss of each step, and whether it diverged; if so, later steps are missing."""
    optimizer, agent = trial.optimizer, trial.agent
    schedules: Dict[str, Any] = getattr(optimizer, "schedules", {})
    schedules.pop("learn_rate", None)
    losses: List[float] = []
    gathered = trial.steps()
    for rate in rates:
        try:
            # A smaller last batch of an epoch does not belong on the curve, because it is easier to
            # rank a label against fewer others.
            while next(gathered):
                agent.give_up()
            optimizer.learn_rate = rate
            losses.append(agent.gathered_loss())
            agent.update(optimizer)
        except NothingToLearnError:
            raise
        except TrainingError:
            return losses, True
        if _diverges(losses):
            return losses, True
    return losses, False


def _diverges(losses: List[float]) -> bool:
    """Return whether the loss is more than twice the lowest loss so far and above that of the
    untrained model. Each is the mean of a few steps."""
    if len(losses) < 2 * RECENT:
        return False
    means = np.convolve(losses, np.ones(RECENT) / RECENT, "valid")
    return bool(means[-1] > means[0] and means[-1] > 2 * means.min())


def judge(rates: List[float], losses: List[float], diverged: bool, steps: int) -> LearnRates:
    """Smooth the curve and suggest a rate.

    rates (List[float]): Learning rates of the losses.
    losses (List[float]): Loss at each rate.
    diverged (bool): Whether the loss diverged after the last of these steps.
    steps (int): Planned number of steps.
    RETURNS (LearnRates): The smoothed curve and the suggestion.
    """
    reason = f"the loss diverged at {rates[-1]:.2g}" if diverged and rates else "all rates tried"
    if len(losses) < RECENT:
        why = f"{reason}, at once: use a lower --start."
        return LearnRates(rates, losses, list(losses), reason, diverged, None, None, None, why)
    width = max(1.0, SMOOTHING * steps)
    # A diverging loss must not raise the smoothed values before it.
    clipped = np.minimum(losses, 2 * np.mean(losses[:RECENT]))
    # Weighted means around each value: no lag, unlike a running mean.
    places = np.arange(len(clipped))
    weights = np.exp(-0.5 * ((places[:, None] - places[None, :]) / width) ** 2)
    smoothed: np.ndarray = weights @ clipped / weights.sum(axis=1)
    lowest = int(smoothed.argmin())
    calm = slice(None, max(lowest + 1, len(losses) // 4))
    # Noise of a smoothed value, which is a mean over about 3.5 widths of the Gaussian.
    noise = float(np.std((clipped - smoothed)[calm])) / (3.5 * width) ** 0.5
    # The first rates are assumed to be too low to learn anything.
    fell = float(smoothed[: max(RECENT, len(losses) // 10)].mean() - smoothed[lowest])
    # Suggest a rate at which most of the fall is over. (The rate with the steepest slope depends on
    # noise.)
    is_above = smoothed[: lowest + 1] >= smoothed[lowest] + (1 - MOST_OF_FALL) * fell
    # If the curve rises from the beginning, no value is above.
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
        why = "At this rate, the loss has fallen most of the way. " + (
            f"It turns upwards at {turn:.2g}."
            if turn is not None
            else "It does not rise again: a higher --end may show where."
        )
    found = (reason, diverged, turn, None if suggestion is None else fallen, suggestion, why)
    return LearnRates(rates, losses, smoothed.tolist(), *found)


def _round(rate: float) -> float:
    """Round to two digits: the curve does not support more."""
    return float(f"{rate:.1e}")
