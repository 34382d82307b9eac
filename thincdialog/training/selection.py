"""The selection of the best evaluated weights."""

from typing import Any, Dict, Iterable, Mapping, Optional

from ..errors import ConfigError, Problem, closest
from ..metrics import higher_is_better

# Scores of the default metrics, which are used if the config names no metrics.
BY_DEFAULT = {
    "accuracy": "Accuracy", "f1": "F1", "precision": "F1", "recall": "F1",
    "hits@1": "Ranking", "hits@5": "Ranking", "hits@10": "Ranking", "mrr": "Ranking",
}  # fmt: skip


class Selection:
    """Compare dev reports by one score, and decide when to stop early.

    training (Mapping[str, Any]): Settings of ``[training]``: `score`; `score_direction` (whether
        higher or lower is better; "auto" decides by the metric's name); `patience` (number of
        evaluations in a row without a new best after which training ends; 0 = no such limit); and
        `target_score`, at which training ends.
    has_dev (bool): Whether there is dev data; without it, the last weights are the best.
    best (Optional[float]): Best score so far.
    step (int): Step of the best score; of equal scores, the first.
    """

    def __init__(self, training: Mapping[str, Any], has_dev: bool):
        self.score, self.direction = training["score"], training["score_direction"]
        self.patience, self.target = training["patience"], training["target_score"]
        self.has_dev = has_dev
        self.best: Optional[float] = None
        self.step = self.without_progress = 0

    def see(self, report: Mapping[str, float], step: int) -> bool:
        """Compare a report, and return whether it is the best so far.

        RAISES (ConfigError): If the report lacks the score, or if it is not known whether higher or
            lower values are better.
        """
        if not self.has_dev:
            self.step = step
            return True
        if self.score not in report:
            raise ConfigError([not_measured(self.score, report)], "config")
        score = report[self.score]
        is_best = self._is_better(score, self.best)
        if is_best:
            self.best, self.step, self.without_progress = score, step, 0
        else:
            self.without_progress += 1
        return is_best

    def reached(self) -> Optional[str]:
        """Return the reason why training should end now, as a phrase for the user, or None."""
        if self.target is not None and self.best is not None:
            if not self._is_better(self.target, self.best):
                return f"target_score = {self.target:g} reached"
        if self.patience and self.without_progress >= self.patience:
            return f"no better score in {self.patience} evaluations (patience)"
        return None

    def state(self) -> Dict[str, Any]:
        """Return the best score so far, as JSON values."""
        return {"best": self.best, "step": self.step, "without_progress": self.without_progress}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state from ``state``."""
        self.best, self.step = state["best"], state["step"]
        self.without_progress = state["without_progress"]

    def _is_better(self, new: float, old: Optional[float]) -> bool:
        better = higher_is_better(self.score, direction=self.direction)
        if better is None:
            text = f"[training] score = '{self.score}': is higher or lower better?"
            hint = 'set score_direction to "max" or "min"'
            raise ConfigError([Problem("", text, hint)], "config")
        return old is None or (new > old if better else new < old)


def not_measured(score: str, names: Iterable[str]) -> Problem:
    """Return the problem of a score that is not in a report with these names."""
    text = f"[training] score = '{score}' is not measured on the dev data"
    return Problem("", text, _hint(score, names))


def _hint(score: str, names: Iterable[str]) -> str:
    """Suggest the name that was probably meant, or list all names except those of single tasks, of
    which there may be hundreds."""
    names = sorted(names)
    metric = BY_DEFAULT.get(score.rpartition("/")[2])
    if any(name.endswith("exact_match") for name in names):
        metric = None  # The default metrics do not compare sets of labels.
    if metric and not any(name.endswith(score.rpartition("/")[2]) for name in names):
        section = f'[evaluation.metrics.{metric.lower()}] @metrics = "thincdialog.{metric}.v1"'
        return f"metrics of a config replace the default ones: add {section}"
    if close := closest(score, names, cutoff=0.7):
        return f"did you mean '{close}'?"
    alone = [name for name in names if "/" not in name]
    tasks = sorted({name.rpartition("/")[0] for name in names} - {""})
    hint = f"choose one of: {', '.join(alone)}"
    return f"{hint}; or that of a task, such as {tasks[0]}/{alone[0]}" if tasks else hint
