"""Which task comes next, so that every task has its share at any time."""

from typing import Any, Dict, Mapping, Sequence


class Shares:
    """Hands out turns to tasks by their weights, without randomness.

    This is fair queueing (WF2Q, Bennett and Zhang, 1996). Of the tasks that are not
    ahead of their share, the one comes next that would be done first with its next
    episode if all were shown side by side, each at the speed of its weight. So no task
    is ever ahead of its share or behind it by more than one episode. (To take the one
    furthest behind would let a small task among many wait for several.)

    weights (Sequence[int]): Of the tasks, 1 or more each.
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
        """The task that comes next, and takes what it is given.

        sizes (Sequence[int]): Of the next episode of each task, 1 or more.
        """
        given, weights, total, whole = self.given, self.weights, self.total, self.sum
        best = -1
        soonest = 0.0
        for task in self.active:
            # Whole numbers: somebody is always not ahead.
            done, weight = given[task], weights[task]
            if done * whole <= weight * total:
                finish = (done + sizes[task]) / weight
                if best < 0 or finish < soonest:
                    best, soonest = task, finish
        given[best] += sizes[best]
        self.total += sizes[best]
        return best

    def leave(self, task: int) -> None:
        """A task has nothing left; the others share anew from here on."""
        self.active.remove(task)
        self._begin()

    def state(self) -> Dict[str, Any]:
        """All of it, as JSON values."""
        return {"weights": self.weights, "active": self.active[:], "given": self.given[:]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state`` was taken."""
        self.weights = list(state["weights"])
        self.active = list(state["active"])
        self._begin()
        self.given = list(state["given"])
        self.total = sum(self.given)
