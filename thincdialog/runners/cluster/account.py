"""The state of a gradient server that its run keeps, so that another one can replace it."""

from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from .gradient_server import ServerReport, UnitReport


def steps_of(made: Iterable[UnitReport]) -> List[UnitReport]:
    """Return the units that led to a step."""
    return [each for each in made if each.report.examples]


class Account:
    """Reports each unit once. A server that replaces a dead one resumes from a snapshot: it has
    to repeat the units that were reported since (it owes them), and they are not reported again.

    saved (Dict[str, Any]): The last snapshot (``GradientServer.snapshot``).
    n_told (int): Number of steps that were reported.
    owed (Set[int]): Units that were reported, and that this server has to repeat.
    """

    def __init__(self, saved: Dict[str, Any]):
        self.saved, self.n_told = saved, 0
        self.owed: Set[int] = set()
        # Units that were reported since the snapshot.
        self._told: Set[int] = set()
        # End of the epoch's units: it follows from the data, so it is kept if a server dies.
        self._end: Optional[int] = None

    def save(self, snapshot: Dict[str, Any]) -> None:
        """Keep the server's current snapshot."""
        self.saved, self._told = snapshot, set(self.owed)

    def start_epoch(self, snapshot: Dict[str, Any]) -> None:
        """Begin an epoch; the server owes no units of the last one."""
        self.save(snapshot)
        self._end = None

    def new(self, told: ServerReport) -> List[UnitReport]:
        """Return the units of a report that were not reported before."""
        new = [each for each in told.made if each.unit not in self.owed]
        units = {each.unit for each in told.made}
        self.owed -= units
        self._told |= units
        if told.end is not None:
            self._end = told.end
        self.n_told += len(steps_of(new))
        return new

    def died(self) -> None:
        """Note that the server died: the next one owes the units since the snapshot."""
        self.owed = set(self._told)

    def start(self) -> Tuple[Dict[str, Any], List[int]]:
        """Return a snapshot for a server to begin with, and the units that it owes."""
        saved = self.saved
        if self._end is not None:
            saved = {**saved, "ledger": {**saved["ledger"], "end": self._end}}
        return saved, sorted(self.owed)
