"""Calibrate the probabilities of classifiers, so that of the texts that get a class with the
probability 0.8, about 80 % are right.

The logits of a classifier are divided by one number, the temperature. It is chosen to make the
labels of the dev data most probable. (Guo et al. 2017, https://arxiv.org/abs/1706.04599)
"""

from typing import Any, List, Sequence, Tuple

import numpy as np
from thinc.api import NumpyOps

from ..agents.classifier import LOWEST
from ..training.experiment import Experiment
from .coverage import Guesses, lowest_threshold
from .evaluate_agent import evaluate_agent
from .predictions import Prediction, Recorder

# Smallest number of dev examples to fit a temperature on, and largest number that is used.
MIN_EXAMPLES, MAX_EXAMPLES = 50, 50_000
# Smallest probability, so that its logarithm is finite.
FLOOR = 1e-30
HIGHEST = 100.0
N_HALVINGS = 30
N_BINS = 15


def tempered(P: np.ndarray, temperature: float) -> np.ndarray:
    """Divide the logits of probabilities by a temperature.

    P (np.ndarray): Probabilities, shape (n_examples, n_classes).
    RETURNS (np.ndarray): The new probabilities, float64, shape (n_examples, n_classes).
    """
    Z: Any = np.log(np.maximum(P, FLOOR))
    return NumpyOps().softmax(Z, temperature=temperature)


def fit_temperature(P: np.ndarray, right: np.ndarray) -> float:
    """Find the temperature with the lowest mean cross-entropy. Bisection finds it, because the loss
    is convex in the inverse of the temperature.

    If all n guesses are right, the lowest loss is near temperature 0, where every probability is
    1.0. The mean probability of the guesses then becomes 1 - 1 / (n + 2) (the rule of succession,
    Laplace 1774).

    P (np.ndarray): Probabilities at temperature 1, shape (n_examples, n_classes).
    right (np.ndarray): Number of each example's class, shape (n_examples,).
    """
    Z = np.log(np.maximum(P, FLOOR))
    wanted = Z[np.arange(len(Z)), right].mean()
    all_right = (P.argmax(axis=1) == right).all()
    low, high = np.log(LOWEST), np.log(HIGHEST)
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        found = tempered(P, np.exp(middle))
        if all_right:
            is_too_sure = found.max(axis=1).mean() > 1 - 1 / (len(Z) + 2)
        else:
            is_too_sure = (found * Z).sum(axis=1).mean() > wanted
        low, high = (middle, high) if is_too_sure else (low, middle)
    return float(np.exp(high))


def calibration_error(P: np.ndarray, right: np.ndarray) -> float:
    """Compute the expected calibration error: the mean distance between probability and accuracy,
    over 15 bins of equal width. The arguments are those of ``fit_temperature``."""
    best = P.max(axis=1)
    bins = np.maximum(np.ceil(best * N_BINS), 1).astype(int)
    gaps = np.bincount(bins, (P.argmax(axis=1) == right) - best)
    return float(np.abs(gaps).sum() / len(best))


def in_scope(rows: Sequence[Prediction], reject_class: str) -> Tuple[np.ndarray, np.ndarray]:
    """Return the probabilities and classes to calibrate on: those of predictions whose label is a
    class other than the ``reject_class``. The latter is left out because its share of the dev data
    is rarely the same as in use.

    rows (Sequence[Prediction]): Predictions of a classifier.
    RETURNS (Tuple[np.ndarray, np.ndarray]): Probabilities, shape (n_examples, n_classes), and the
        number of each example's class, shape (n_examples,).
    """
    index = {name: n for n, name in enumerate(rows[0].reply["classes"])} if rows else {}
    known = [row for row in rows if row.labels and row.labels[0] in {*index} - {reject_class}]
    right = np.array([index[(row.labels or ())[0]] for row in known], dtype=int)
    P = np.array([row.reply["probabilities"] for row in known]).reshape(len(known), len(index))
    return P, right


def calibrate(experiment: Experiment) -> str:
    """Fit a classifier's temperature on the dev data, then choose its threshold, if it has none.

    RETURNS (str): A note for the user: the threshold that was chosen and what follows from it, or
        which step was not possible; "" if only the temperature was fitted.
    """
    agent = experiment.agent
    rows = _answers(experiment)
    P, right = in_scope(rows, agent.reject_class)
    n_classes = len(set(right.tolist()))
    if len(right) < MIN_EXAMPLES or n_classes < 2:
        text = f"examples in scope: {len(right)} ({MIN_EXAMPLES} are needed), classes: {n_classes} "
        text += "(2 are needed): probabilities are not calibrated, and may be far from the truth"
        if agent.rejects_below is None:
            agent.rejects_below = 0.0
            text += ", and no threshold is chosen: every text gets a class. Give more dev data, or "
            text += "set [agent] threshold to a number"
        return text
    agent.temperature = fit_temperature(P, right)
    if agent.rejects_below is not None:
        return ""
    guesses = Guesses.of(_answers(experiment), agent)
    wanted, share = agent.wanted
    chosen = lowest_threshold(guesses, wanted, share)
    agent.rejects_below = chosen or 0.0
    if chosen is not None:
        answered = guesses.confidence >= chosen
        n, n_right = int(answered.sum()), int(guesses.is_right[answered].sum())
        text = f"threshold {chosen:.4f} chosen for {wanted} {share:g}: {n:,} of {len(answered):,} "
        return text + f"texts get a class, of which {n_right:,} are right"
    cause = "no threshold reaches it"
    if wanted == "recall":
        cause = f"no example is labelled {agent.reject_class!r}"
    return f"{wanted} {share:g} was wanted, but {cause}: every text gets a class"


def _answers(experiment: Experiment) -> List[Prediction]:
    """Let the agent answer the dev data, or a sample of it if there is much."""
    most = min(experiment.evaluation["max_examples"] or MAX_EXAMPLES, MAX_EXAMPLES)
    dev = experiment.evaluation_split("dev", with_metrics=False, max_examples=most)
    recorder = Recorder()
    evaluate_agent(experiment.agent, dev, experiment.make_evaluation_world, recorder)
    return [row for rows in recorder.predictions.values() for row in rows if row.labels]
