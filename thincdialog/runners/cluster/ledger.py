"""A record of units of work, so that each unit counts once even if it is done twice."""

from typing import Any, Dict, List, Mapping, Optional, Tuple

# The first unit that a share does not have, and the state of the share's world there (None if it
# cannot be saved), as a list for JSON; None until a worker has reached the end of the share.
End = Optional[List[Any]]


class Ledger:
    """Record which units are handed out, done, or to be repeated. Units are numbered through all
    epochs. An epoch has one share or more; with n shares, every n-th unit is of the same share. If
    there are several, no two workers have units of the same share. A unit that is handed out is at
    a worker until it is done or taken back; a second result for it is ignored.

    first (int): First unit of this epoch.
    ends (List[End]): Ends of the shares.
    """

    def __init__(self) -> None:
        self.first = 0
        self._begin(1)

    def _begin(self, n_shares: int) -> None:
        self.ends: List[End] = [None] * n_shares
        # For each share, the next unit that was never handed out.
        self._next = [self.first + share for share in range(n_shares)]
        self._again: List[int] = []
        self._at: Dict[int, int] = {}  # Worker to unit.
        self._share_of: Dict[int, int] = {}  # Worker to the share of its last unit.

    def start_epoch(self, n_shares: int = 1) -> List[Any]:
        """Begin an epoch. Call this when all units of the last epoch are done.

        n_shares (int): Number of shares of this epoch.
        RETURNS (List[Any]): For each share, the state of its world at the end of the last epoch;
            None if it is not known, or if the number of shares has changed.
        """
        known = [end or [self.first, None] for end in self.ends]
        self.first = max(unit for unit, _ in known)
        self._begin(n_shares)
        return [state for _, state in known] if len(known) == n_shares else [None] * n_shares

    def _number(self, unit: int) -> int:
        """Return the number of a unit's share."""
        return (unit - self.first) % len(self.ends)

    def _exists(self, unit: int) -> bool:
        """Return whether a unit exists, as far as is known."""
        end = self.ends[self._number(unit)]
        return end is None or unit < end[0]

    def hand_out(self, worker: int, at: Tuple[int, int] = (0, 1)) -> Optional[int]:
        """Return the next unit for a worker; None if there is none now.

        worker (int): Number of the worker.
        at (Tuple[int, int]): The share that the worker can continue, and the number of shares. It
            gets a unit of another share only if this share has none, or another worker has it.
        """
        n = len(self.ends)
        taken = {share for other, share in self._share_of.items() if other != worker and n > 1}
        for share in sorted({*range(n)} - taken, key=lambda share: ((share, n) != at, share)):
            unit = self._take(share)
            if unit is not None:
                self._at[worker], self._share_of[worker] = unit, share
                return unit
        return None

    def _take(self, share: int) -> Optional[int]:
        """Return the next unit of a share; None if there is none now."""
        again = [unit for unit in self._again if self._number(unit) == share]
        if again:
            self._again.remove(again[0])
            return again[0]
        unit = self._next[share]
        if not self._exists(unit):
            return None
        self._next[share] += len(self.ends)
        return unit

    def is_wanted(self, worker: int, unit: int) -> bool:
        """Return whether the unit is at this worker and not done yet."""
        return self._at.get(worker) == unit

    def done(self, worker: int) -> None:
        """Record that the unit at a worker is done."""
        del self._at[worker]

    def back(self, worker: int) -> None:
        """Take back the unit at a worker, so that it is handed out again."""
        self._again.append(self._at.pop(worker))

    def past_end(self, worker: int, state: Any = None) -> None:
        """Record that the unit at a worker does not exist, because its share has fewer units.

        worker (int): Number of the worker.
        state (Any): State of the worker's world, as JSON values; None if it cannot be saved.
        """
        unit = self._at.pop(worker)
        if self._exists(unit):
            self.ends[self._number(unit)] = [unit, state]
        self._again = list(filter(self._exists, self._again))

    @property
    def n_out(self) -> int:
        """Number of units at workers."""
        return len(self._at)

    @property
    def is_over(self) -> bool:
        """Whether all units of the epoch are done."""
        left = [*self._next, *self._again, *self._at.values()]
        return None not in self.ends and not any(map(self._exists, left))

    def state(self) -> Dict[str, Any]:
        """Return the state as JSON values. Units at workers are listed as units to repeat."""
        return {
            "first": self.first,
            "next": self._next[:],
            "ends": self.ends[:],
            "again": sorted([*self._again, *self._at.values()]),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        self.first = state["first"]
        self._begin(len(state["ends"]))
        self.ends, self._next = list(state["ends"]), list(state["next"])
        self._again = list(filter(self._exists, state["again"]))
