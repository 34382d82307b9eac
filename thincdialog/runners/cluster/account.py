"""The record that a run keeps of its gradient server, so that it can replace a dead server."""

from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from .gradient_server import ServerReport, UnitReport
from .ledger import End


def steps_of(made: Iterable[UnitReport]) -> List[UnitReport]:
    """Return the units that led to a step.

    made (Iterable[UnitReport]): Reports of units.
    """
    return [each for each in made if each.report.examples]


class Account:
    """Keep the last snapshot of the server, and report each unit once. A server that replaces a
    dead one resumes from the snapshot. It owes the units that were reported since then: it has to
    repeat them, and they are not reported again.

    saved (Dict[str, Any]): The last snapshot (``GradientServer.snapshot``).
    n_told (int): Number of steps that were reported.
    owed (Set[int]): Units that were reported already, and that the server has to repeat.
    """

    def __init__(self, saved: Dict[str, Any]):
        self.saved, self.n_told = saved, 0
        self.owed: Set[int] = set()
        # Units that were reported since the snapshot.
        self._told: Set[int] = set()
        # Ends of the epoch's shares. They depend on the data only, so they outlive a server.
        self._ends: Optional[List[End]] = None

    def save(self, snapshot: Dict[str, Any]) -> None:
        """Replace the snapshot by the server's current one."""
        self.saved, self._told = snapshot, set(self.owed)

    def start_epoch(self, snapshot: Dict[str, Any]) -> None:
        """Begin an epoch. The server owes no units of the last epoch.

        snapshot (Dict[str, Any]): The server's snapshot at the beginning of the epoch.
        """
        self.save(snapshot)
        self._ends = None

    def new(self, told: ServerReport) -> List[UnitReport]:
        """Return the units in a server's report that were not reported before."""
        new = [each for each in told.made if each.unit not in self.owed]
        units = {each.unit for each in told.made}
        self.owed -= units
        self._told |= units
        self._ends = told.ends
        self.n_told += len(steps_of(new))
        return new

    def died(self) -> None:
        """Record that the server died: the next server owes the units since the snapshot."""
        self.owed = set(self._told)

    def start(self) -> Tuple[Dict[str, Any], List[int]]:
        """Return the snapshot that the next server begins with, and the units that it owes."""
        saved = self.saved
        if self._ends is not None:
            saved = {**saved, "ledger": {**saved["ledger"], "ends": self._ends}}
        return saved, sorted(self.owed)
