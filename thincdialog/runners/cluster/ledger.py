"""A record of units of work, so that each unit counts once even if it is done twice."""

from typing import Any, Collection, Dict, List, Mapping, Optional, Set, Tuple

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
    owed (Set[int]): Units that were done before a server died and have to be repeated. They are
        handed out before all others of their share.
    """

    def __init__(self) -> None:
        self.first = 0
        self._begin(1)

    def _begin(self, n_shares: int) -> None:
        self.ends: List[End] = [None] * n_shares
        self.owed: Set[int] = set()
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

    def hand_out(
        self, worker: int, is_full: bool = False, at: Tuple[int, int] = (0, 1)
    ) -> Optional[int]:
        """Return the next unit for a worker; None if there is none now.

        worker (int): Number of the worker.
        is_full (bool): Whether to hand out only units that are owed.
        at (Tuple[int, int]): The share that the worker can continue, and the number of shares. It
            gets a unit of another share only if this share has none, or another worker has it.
        """
        n = len(self.ends)
        taken = {share for other, share in self._share_of.items() if other != worker and n > 1}
        for share in sorted({*range(n)} - taken, key=lambda share: ((share, n) != at, share)):
            unit = self._take(share, is_full)
            if unit is not None:
                self._at[worker], self._share_of[worker] = unit, share
                return unit
        return None

    def _take(self, share: int, is_full: bool) -> Optional[int]:
        """Return the next unit of a share; None if there is none now."""
        again = [unit for unit in self._again if self._number(unit) == share]
        again = [unit for unit in again if unit in self.owed] or ([] if is_full else again)
        if again:
            self._again.remove(again[0])
            return again[0]
        unit = self._next[share]
        if is_full or not self._exists(unit):
            return None
        self._next[share] += len(self.ends)
        return unit

    def is_wanted(self, worker: int, unit: int) -> bool:
        """Return whether the unit is at this worker and not done yet."""
        return self._at.get(worker) == unit

    def done(self, worker: int) -> None:
        """Record that the unit at a worker is done."""
        self.owed.discard(self._at.pop(worker))

    def back(self, worker: int) -> None:
        """Take back the unit at a worker, if any, so that it is handed out again."""
        unit = self._at.pop(worker, None)
        if unit is not None:
            self._again.append(unit)

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
        """Number of units at workers, and of owed units that are at none."""
        return len(self._at) + len(self.owed.intersection(self._again))

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

    def restore(self, state: Mapping[str, Any], owed: Collection[int] = ()) -> None:
        """Restore a state.

        state (Mapping[str, Any]): A result of ``state``.
        owed (Collection[int]): Units that were done since then and have to be repeated.
        """
        self.first, n = state["first"], len(state["ends"])
        self._begin(n)
        self.ends, self.owed, again = list(state["ends"]), set(owed), set(state["again"])
        for share, following in enumerate(state["next"]):
            done = [unit + n for unit in owed if self._number(unit) == share]
            self._next[share] = max([following, *done])
            again.update(range(following, self._next[share], n))
        self._again = sorted(filter(self._exists, again))
