"""A record of units of work, so that each unit counts once even if it is done twice."""

from typing import Any, Collection, Dict, List, Mapping, Optional, Set


class Ledger:
    """Record which units are handed out, done, or to be repeated. Units are numbered from 0 through
    all epochs. A unit that is handed out is at a worker until it is done or taken back; a second
    result for it is ignored.

    first (int): First unit of this epoch.
    end (Optional[int]): First unit of the next epoch; None until it is known.
    owed (Set[int]): Units that were done before a server died and have to be repeated. They are
        handed out before all others.
    """

    def __init__(self) -> None:
        self.first = self._next = 0
        self.end: Optional[int] = None
        self.owed: Set[int] = set()
        self._again: List[int] = []
        self._at: Dict[int, int] = {}  # Worker to unit.
        self._done: Set[int] = set()

    def start_epoch(self) -> None:
        """Begin an epoch. Call this when all units of the last epoch are done."""
        if self.end is not None:
            self.first = self._next = self.end
        self.end, self.owed, self._again, self._done = None, set(), [], set()

    def hand_out(self, worker: int, is_full: bool = False) -> Optional[int]:
        """Return the next unit for a worker; None if there is none now.

        worker (int): Number of the worker.
        is_full (bool): Whether to hand out only units that are owed.
        """
        again = [unit for unit in self._again if unit in self.owed]
        again = again or ([] if is_full else self._again)
        if again:
            unit = again[0]
            self._again.remove(unit)
        elif is_full:
            return None
        elif self.end is None or self._next < self.end:
            unit = self._next
            self._next += 1
        else:
            return None
        self._at[worker] = unit
        return unit

    def is_wanted(self, worker: int, unit: int) -> bool:
        """Return whether the unit is at this worker and not done yet."""
        return self._at.get(worker) == unit and unit not in self._done

    def done(self, worker: int) -> None:
        """Record that the unit at a worker is done."""
        unit = self._at.pop(worker)
        self._done.add(unit)
        self.owed.discard(unit)

    def back(self, worker: int) -> None:
        """Take back the unit at a worker, if any, so that it is handed out again."""
        unit = self._at.pop(worker, None)
        if unit is not None:
            self._again.append(unit)

    def past_end(self, worker: int) -> None:
        """Record that the unit at a worker does not exist, because the epoch has fewer units."""
        unit = self._at.pop(worker)
        self.end = unit if self.end is None else min(self.end, unit)
        self._again = [each for each in self._again if each < self.end]

    @property
    def n_out(self) -> int:
        """Number of units at workers."""
        return len(self._at)

    @property
    def is_over(self) -> bool:
        """Whether all units of the epoch are done."""
        return self.end is not None and len(self._done) == self.end - self.first

    def state(self) -> Dict[str, Any]:
        """Return the state as JSON values. Units at workers are listed as units to repeat."""
        return {
            "first": self.first,
            "next": self._next,
            "end": self.end,
            "again": sorted([*self._again, *self._at.values()]),
        }

    def restore(self, state: Mapping[str, Any], owed: Collection[int] = ()) -> None:
        """Restore a state.

        state (Mapping[str, Any]): A result of ``state``.
        owed (Collection[int]): Units that were done since then and have to be repeated.
        """
        self.first, self.end, self.owed = state["first"], state["end"], set(owed)
        self._next = max([state["next"], *(unit + 1 for unit in owed)])
        self._again = sorted({*state["again"], *range(state["next"], self._next)})
        self._at, self._done = {}, set(range(self.first, self._next)) - set(self._again)
        if self.end is not None:
            self._done = {unit for unit in self._done if unit < self.end}
