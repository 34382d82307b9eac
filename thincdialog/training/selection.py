"""Which of the evaluated weights are the best."""

import difflib
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Mapping, Optional

from ..errors import ConfigError, Problem
from ..metrics import higher_is_better

# What the config measures unless it names metrics of its own.
BY_DEFAULT = {
    "accuracy": "Accuracy", "f1": "F1", "precision": "F1", "recall": "F1",
    "hits@1": "Ranking", "hits@5": "Ranking", "hits@10": "Ranking", "mrr": "Ranking",
}  # fmt: skip


@dataclass
class Best:
    """Remembers the best score and says when to give up or be content.

    higher_is_better (bool): Direction of the score.
    patience (int): Evaluations in a row without a new best before training ends;
        0 = never for this reason.
    target (Optional[float]): Score that is good enough to end.
    """

    higher_is_better: bool
    patience: int = 0
    target: Optional[float] = None
    score: Optional[float] = None
    step: int = 0
    report: Mapping[str, float] = field(default_factory=dict)
    without_progress: int = 0

    def see(self, score: float, step: int, report: Mapping[str, float]) -> bool:
        """Take in a new score; True if it is the best so far (the first of equals)."""
        if self.score is None or self._is_better(score, self.score):
            self.score, self.step, self.report = score, step, dict(report)
            self.without_progress = 0
            return True
        self.without_progress += 1
        return False

    def reached(self) -> Optional[str]:
        """Why to end now, as a phrase for the user, or None."""
        if self.target is not None and self.score is not None:
            if not self._is_better(self.target, self.score):
                return f"target_score = {self.target:g} reached"
        if self.patience and self.without_progress >= self.patience:
            return f"no better score in {self.patience} evaluations (patience)"
        return None

    def state(self) -> Dict[str, Any]:
        """What it remembers, as JSON values."""
        return {
            "higher_is_better": self.higher_is_better,
            "score": self.score,
            "step": self.step,
            "report": dict(self.report),
            "without_progress": self.without_progress,
        }

    def _is_better(self, new: float, old: float) -> bool:
        return new > old if self.higher_is_better else new < old


class Selection:
    """Compares dev reports by one score.

    score (str): Name of the metric.
    direction (str): "max", "min", or "auto" to tell from the metric's name.
    patience (int): See ``Best``.
    target (Optional[float]): See ``Best``.
    has_dev (bool): Whether there is dev data; without, the last weights are the best.
    best (Optional[Best]): None before the first comparison.
    """

    def __init__(
        self, score: str, direction: str, patience: int, target: Optional[float], has_dev: bool
    ):
        self.score, self.direction = score, direction
        self.patience, self.target, self.has_dev = patience, target, has_dev
        self.best: Optional[Best] = None

    def see(self, report: Mapping[str, float], step: int) -> bool:
        """Take in a report; True if it is the best so far.

        RAISES (ConfigError): If it lacks the score, or nobody knows which way is better.
        """
        if not self.has_dev:
            return True
        if self.score not in report:
            text = f"[training] score = '{self.score}' is not measured on the dev data"
            raise ConfigError([Problem("", text, _hint(self.score, report))], "config")
        if self.best is None:
            self.best = Best(self._higher_is_better(), self.patience, self.target)
        return self.best.see(report[self.score], step, report)

    def _higher_is_better(self) -> bool:
        better = {"max": True, "min": False}.get(self.direction)
        better = higher_is_better(self.score) if better is None else better
        if better is None:
            text = f"[training] score = '{self.score}': higher or lower better?"
            hint = 'set score_direction to "max" or "min"'
            raise ConfigError([Problem("", text, hint)], "config")
        return better

    def reached(self) -> Optional[str]:
        """Why to end now, as a phrase for the user, or None."""
        return self.best.reached() if self.best is not None else None

    def state(self) -> Optional[Dict[str, Any]]:
        """The best so far, as JSON values."""
        return None if self.best is None else self.best.state()

    def restore(self, state: Optional[Mapping[str, Any]]) -> None:
        """Take back what ``state`` gave."""
        self.best = None
        if state is not None:
            self.best = Best(patience=self.patience, target=self.target, **state)


def _hint(score: str, names: Iterable[str]) -> str:
    """The name that was meant, or the measures without their tasks: with those there may be
    a hundred names."""
    names = sorted(names)
    metric = BY_DEFAULT.get(score.rpartition("/")[2])
    if metric and not any(name.endswith(score.rpartition("/")[2]) for name in names):
        section = f'[evaluation.metrics.{metric.lower()}] @metrics = "thincdialog.{metric}.v1"'
        return f"metrics of a config replace the default ones: add {section}"
    lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(score.lower(), lower, n=1, cutoff=0.7)
    if close:
        return f"did you mean '{lower[close[0]]}'?"
    alone = [name for name in names if "/" not in name]
    tasks = sorted({name.rpartition("/")[0] for name in names} - {""})
    hint = f"choose one of: {', '.join(alone)}"
    return f"{hint}; or that of a task, such as {tasks[0]}/{alone[0]}" if tasks else hint
