"""The place in an epoch of several tasks that are shown together."""

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..errors import DataError
from .cursor import Block, Wanted
from .shares import Shares
from .showing import Showing
from .store import Unit


class MixedCursor:
    """Hands out the episodes of several tasks; which task is next is chosen for each.

    parts (Sequence[Showing]): The tasks, each with a cursor of its own.
    weights (Optional[Sequence[int]]): Of the tasks; None for their sizes, or for equal
        ones if a size is not known.
    unit (Unit): What the weights count.
    repeat (bool): Whether a task is shown again until all were shown whole.
    """

    def __init__(
        self, parts: Sequence[Showing], weights: Optional[Sequence[int]], unit: Unit, repeat: bool
    ):
        self.cursors = [part.cursor for part in parts]
        self._parts = parts
        self._weights = weights
        self._unit = unit
        self._repeat = repeat
        # Whether anything was taken: an endless task goes on from epoch to epoch.
        self._has_begun = False
        self.epoch = self.seed = 0
        self.start(0, parts[0].seed)

    def start(self, epoch: int, seed: int) -> None:
        """Begin an epoch. Endless tasks go on where they are, if it is a later epoch of
        the same seed."""
        goes_on = self._has_begun and seed == self.seed and epoch > self.epoch
        self.run = object()
        self.epoch = epoch
        self.seed = seed
        for cursor in self.cursors:
            if not (goes_on and cursor.is_endless):
                cursor.start(epoch, seed)
        self._shares: Optional[Shares] = None
        self._look_at_all([number for number, _ in enumerate(self.cursors)])
        # The tasks that keep the epoch from ending.
        self._open = {task for task in self._unseen if not self.cursors[task].is_endless}
        self._ends = bool(self._open)

    def _look_at_all(self, tasks: List[int]) -> None:
        self._unseen = tasks
        self._heads: List[Tuple[Optional[Block], int]] = [(None, 0)] * len(self.cursors)
        self._sizes = [1] * len(self.cursors)

    def is_exhausted(self) -> bool:
        """Whether every task was shown whole."""
        if self._shares is None:
            self._shares = Shares(self._weights or self._task_sizes())
        for task in self._unseen:
            self._look(task, self._shares)
        self._unseen = []
        # Even of endless tasks a worker's share may be empty.
        return (self._ends and not self._open) or not self._shares.active

    def _task_sizes(self) -> List[int]:
        sizes = [part.size(self._unit) for part in self._parts]
        return [size or 1 for size in sizes] if None not in sizes else [1] * len(sizes)

    def _look(self, task: int, shares: Shares) -> None:
        """What a task has next, if anything."""
        cursor = self.cursors[task]
        if cursor.is_exhausted():
            self._open.discard(task)
            if self._repeat and self._open:
                cursor.start_again()
            # With nothing in it even then, if it is a worker's share of a small task.
            if cursor.is_exhausted():
                shares.leave(task)
                return
        block, episode = self._heads[task] = cursor.head()
        bounds = block.store.bounds(self._unit)
        self._sizes[task] = bounds[episode + 1] - bounds[episode]

    def take_one(self) -> Tuple[Block, int]:
        """The next episode's block and number; call ``is_exhausted`` before."""
        assert self._shares is not None
        task = self._shares.next(self._sizes)
        self._unseen = [task]
        self._has_begun = True
        self.cursors[task].take(1)
        block, episode = self._heads[task]
        assert block is not None
        return block, episode

    def take(self, n_episodes: int) -> Tuple[Block, Sequence[int]]:
        """One episode, whatever is asked for: the next one is of another task, maybe."""
        block, episode = self.take_one()
        return block, (episode,)

    def state(self) -> Dict[str, Any]:
        """The place, as JSON values."""
        return {
            "epoch": self.epoch,
            "seed": self.seed,
            "has_begun": self._has_begun,
            "tasks": [[part.name, part.cursor.state()] for part in self._parts],
            "open": sorted(self._open),
            "shares": None if self._shares is None else self._shares.state(),
        }

    def restore(
        self, state: Mapping[str, Any], wanted: Mapping[int, Wanted]
    ) -> Dict[Tuple[int, int, int], Block]:
        """Go to a place.

        state (Mapping[str, Any]): From ``state``.
        wanted (Mapping[int, Wanted]): Of tasks, the blocks that copies are in.
        RETURNS (Dict[Tuple[int, int, int], Block]): These by (task, again, number).
        RAISES (DataError): If the data has no such place, or the tasks are others or stand
            in another order.
        """
        # Shares and what is open are kept by number.
        saved = [name for name, _ in state["tasks"]]
        names = [part.name for part in self._parts]
        if saved != names:
            text = f"the saved state is of other tasks: {', '.join(saved)}, in this order"
            raise DataError(", ".join(names), text)
        self.start(state["epoch"], state["seed"])
        self._has_begun = state["has_begun"]
        found = {}
        for task, (part, (_, own)) in enumerate(zip(self._parts, state["tasks"])):
            for (again, number), block in part.cursor.restore(own, wanted.get(task, {})).items():
                found[task, again, number] = block
        self._open = set(state["open"])
        if state["shares"] is not None:
            self._shares = Shares(state["shares"]["weights"])
            self._shares.restore(state["shares"])
            self._look_at_all(self._shares.active[:])
        return found
