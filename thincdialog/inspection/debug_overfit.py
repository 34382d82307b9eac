"""Check whether a model can memorise one batch. If it cannot, it cannot learn anything else."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Set, TextIO

import numpy as np
from thinc.api import set_dropout_rate

from ..agents.multi_label import THRESHOLDS
from ..config import ConfigLike
from ..errors import DialogError, NothingToLearnError, TrainingError
from ..examples.batch import Batch
from ..messages import Message
from ..models.node_names import node_names
from ..training.experiment import CodeLike, Overrides
from .trial import Trial, prepared

# A batch counts as memorised at this fraction of the best possible score.
ENOUGH = 0.95
# Number of steps within which every layer should get a gradient. In the first step, layers below a
# zero-initialised layer get none.
FIRST_STEPS = 10
# Training stops at this loss, because there is nothing left to learn.
SMALL_LOSS = 1e-4
# A loss counts as lower if it is below this fraction of its first value.
MOVED = 0.99


@dataclass
class Overfit:
    """Hold the result of ``debug_overfit()``.

    examples (int): Number of examples with labels in the batch.
    labels (int): Number of distinct labels among them.
    steps (int): Number of updates of the weights.
    losses (List[float]): Mean loss before each update, and after the last one.
    first_score (float): Fraction of the batch with the right answer before the first update.
    last_score (float): Fraction of the batch with the right answer after the last update.
    best_possible (float): Highest possible fraction, which is below 1 if equal contexts have
        different labels.
    without_gradient (List[str]): Parameters whose gradient was zero in the first steps.
    unchanged (List[str]): Other parameters that no update has changed.
    hints (List[str]): Likely causes if the batch was not memorised, as sentences.
    """

    examples: int
    labels: int
    steps: int
    losses: List[float]
    first_score: float
    last_score: float
    best_possible: float
    without_gradient: List[str]
    unchanged: List[str]
    hints: List[str]

    @property
    def is_memorised(self) -> bool:
        """Whether the batch was memorised, or nearly; False if it has only one label."""
        return self.labels > 1 and self.last_score >= ENOUGH * self.best_possible


def debug_overfit(
    config: ConfigLike,
    *,
    steps: int = 200,
    overrides: Overrides = None,
    code: CodeLike = None,
    stderr: Optional[TextIO] = None,
) -> Overfit:
    """Train on the first training batch alone, to check whether the model can memorise it. Dropout
    is switched off, so that loss and score can reach their best; everything else is as in training.
    No files are written.

    config (ConfigLike): Path of a config, its text, a Config, or a dict of its sections.
    steps (int): Maximum number of updates, 1 or more; training stops earlier if the loss is almost
        0.
    overrides (Optional[Mapping[str, Any]]): "section.key" to value.
    code (CodeLike): Python file or files to import first.
    stderr (Optional[TextIO]): Stream for progress; sys.stderr if None.
    RETURNS (Overfit): The scores and losses, with likely causes if the batch was not memorised.
    RAISES (DialogError): If the config or the data cannot be used, or ``steps`` is below 1.
    """
    if steps < 1:
        raise DialogError(f"steps = {steps}, expected 1 or more")
    with prepared(config, overrides, code, stderr) as trial:
        set_dropout_rate(trial.model, 0.0)
        return _learn(trial, _first_batch(trial), steps)


def _first_batch(trial: Trial) -> Batch:
    """Return the batch of the first training step that has labels."""
    agent, batches = trial.agent, []
    learn = agent.learn

    def note(batch: Sequence[Message]) -> None:
        batches.append(Batch.of(batch))
        learn(batch)

    agent.learn = note
    next(trial.steps())
    del agent.learn
    agent.give_up()
    return batches[0]


def _learn(trial: Trial, batch: Batch, steps: int) -> Overfit:
    """Train on the batch until it is memorised or the steps are used up."""
    agent, parameters = trial.agent, trial.agent.parameters
    before = parameters.values.copy()
    first_score = _score(agent, batch)
    names = _names(agent, np.ones(len(before), dtype=bool))
    has_gradient: Set[str] = set()
    losses: List[float] = []
    hints: List[str] = []
    n_steps = 0
    try:
        losses.append(_gather(agent, batch, trial.seed, 1))
        while n_steps < steps and losses[-1] > SMALL_LOSS:
            if n_steps < FIRST_STEPS:
                has_gradient.update(_names(agent, parameters.gradients != 0))
            agent.update(trial.optimizer)
            n_steps += 1
            losses.append(_gather(agent, batch, trial.seed, n_steps + 1))
    except NothingToLearnError:
        raise
    except TrainingError:
        hints.append("Loss or gradient is not finite: lower the learning rate a lot.")
    agent.give_up()
    changed = set(_names(agent, parameters.values != before))
    found = Overfit(
        examples=len(batch),
        labels=len(set(_labels_of(agent, batch))),
        steps=n_steps,
        losses=losses,
        first_score=first_score,
        last_score=_score(agent, batch),
        best_possible=_best_possible(agent, batch),
        # Some agents update weights without keeping a gradient.
        without_gradient=[name for name in names if name not in has_gradient | changed],
        unchanged=[name for name in names if name in has_gradient - changed],
        hints=hints,
    )
    hints += _hints(found, float(getattr(trial.optimizer, "learn_rate", 0.0)))
    return found


def _names(agent: Any, flags: Any) -> List[str]:
    """Return the names of the parameters that have a flag. Frozen parameters have none, and those
    that are chosen on the dev data are left out."""
    names = node_names(agent.model)
    return [
        f"{slot.param} of {names[slot.node]}"
        for slot in agent.parameters.slots
        if slot.param != THRESHOLDS and flags[slot.offset : slot.offset + slot.size].any()
    ]


def _gather(agent: Any, batch: Batch, seed: int, step: int) -> float:
    """Replace the gradient by that of the batch, and return the loss of the batch."""
    agent.give_up()
    agent.begin_microbatch(seed, step, 0)
    agent.learn(batch)
    return float(agent.gathered_loss())


def _score(agent: Any, batch: Batch) -> float:
    """Return the fraction of right replies."""
    agent.weights_changed()
    answers = agent.answer(_with_candidates(agent, batch))
    agent.weights_changed()
    wanted = _labels_of(agent, batch)
    return sum(label == _best(answer) for label, answer in zip(wanted, answers)) / len(batch)


def _labels_of(agent: Any, batch: Batch) -> Sequence[Any]:
    """Return the label of each example, or its set of labels if the agent predicts sets."""
    return (
        [*map(frozenset, batch.column("labels"))] if agent.has_label_sets else batch.first_labels()
    )


def _with_candidates(agent: Any, batch: Batch) -> Sequence[Message]:
    """Return the messages. If a ranker ranks labels against the candidates of the batch in
    training, add these candidates to each message."""
    source = getattr(agent, "candidates", None)
    if source not in ("batch", "batch_all"):
        return batch
    replies = batch.first_labels()
    if source == "batch_all":
        replies = [text for texts in batch.column("label_candidates") for text in texts or ()]
    replies = list(dict.fromkeys(replies))
    return [Message(message, label_candidates=replies) for message in batch]


def _best(answer: Message) -> Any:
    """Return the reply with the highest score, even if the agent would reject it; or the set of
    predicted labels."""
    if "predicted_labels" in answer:
        return frozenset(answer["predicted_labels"])
    texts, scores = answer.get("text_candidates"), answer.get("candidate_scores")
    if not texts:
        return answer.get("text")
    best: str = texts[int(np.argmax(scores))] if scores else texts[0]
    return best


def _best_possible(agent: Any, batch: Batch) -> float:
    turns, features = batch.turns(agent.history_size), batch.column("features")
    labels: Dict[Any, Counter] = {}
    for said, row, label in zip(turns, features, _labels_of(agent, batch)):
        context = str(said) if row is None else np.asarray(row).tobytes()
        labels.setdefault(context, Counter())[label] += 1
    return sum(max(found.values()) for found in labels.values()) / len(batch)


def _hints(found: Overfit, learn_rate: float) -> List[str]:
    if found.labels == 1:
        return [
            f"All labels of the batch ({found.examples} examples) are the same, so there was "
            "nothing to learn: look at the data (display-data), or use a larger batch."
        ]
    if found.hints:  # A loss that is not finite explains all other symptoms.
        return []
    if not learn_rate and not found.is_memorised:
        return ["The learning rate is 0."]
    hints = []
    if found.without_gradient:
        names = _first(found.without_gradient)
        hints.append(f"No gradient reaches {names}. (Parameters unused in the batch have none.)")
    if found.unchanged:
        hints.append(f"{_first(found.unchanged)} has a gradient but does not change: is it frozen?")
    if found.is_memorised:
        return hints
    first, last = found.losses[0], found.losses[-1]
    rate = f"learn_rate (now {learn_rate:g})"
    if last > MOVED * first:
        how = "is constant" if first == last else f"does not fall (first {first:.4g})"
        hints.append(
            f"The loss {how}: try {rate} ten times lower and ten times higher; find-lr helps."
        )
    elif last < MOVED * min(found.losses[: len(found.losses) * 3 // 4] or [first]):
        hints.append(f"The loss is still falling: give more --steps, or raise {rate}.")
    else:
        hints.append(
            f"The loss no longer falls: lower {rate}; or the model is too small, or cannot see "
            "the turns that the labels depend on (history_size, max_context)."
        )
    return hints


def _first(names: List[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
