"""Choose the next task, so that every task has its share at any time."""

from typing import Any, Dict, Mapping, Sequence


class Shares:
    """Choose tasks by their weights, without randomness.

    This is fair queueing (WF2Q, Bennett and Zhang, 1996). Among the tasks that are not
    ahead of their share, the next one is the task that would finish its next episode
    first if all tasks were shown in parallel, each at the speed of its weight. So no task
    is ever more than one episode ahead of its share or short of it. (If the task with the
    largest deficit came next, a small task among many would have to wait for several episodes.)

    weights (Sequence[int]): Weight of each task, 1 or more.
    """

    def __init__(self, weights: Sequence[int]):
        self.weights = list(weights)
        self.active = list(range(len(self.weights)))
        self._begin()

    def _begin(self) -> None:
        self.given = [0] * len(self.weights)
        self.total = 0
        self.sum = sum(self.weights[task] for task in self.active)

    def next(self, sizes: Sequence[int]) -> int:
        """Choose the next task, and count its next episode.

        sizes (Sequence[int]): Size of the next episode of each task, 1 or more.
        """
        given, weights, total, whole = self.given, self.weights, self.total, self.sum
        best = -1
        soonest = 0.0
        for task in self.active:
            # Computed in integers, so that rounding never makes all tasks look ahead.
            done, weight = given[task], weights[task]
            if done * whole <= weight * total:
                finish = (done + sizes[task]) / weight
                if best < 0 or finish < soonest:
                    best, soonest = task, finish
        given[best] += sizes[best]
        self.total += sizes[best]
        return best

    def leave(self, task: int) -> None:
        """Remove a task that is exhausted; the counts of the others restart from zero."""
        self.active.remove(task)
        self._begin()

    def state(self) -> Dict[str, Any]:
        """Return the whole state, as JSON values."""
        return {"weights": self.weights, "active": self.active[:], "given": self.given[:]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a ``state``."""
        self.weights = list(state["weights"])
        self.active = list(state["active"])
        self._begin()
        self.given = list(state["given"])
        self.total = sum(self.given)
