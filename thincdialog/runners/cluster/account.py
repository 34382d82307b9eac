"""What a run knows of its server of gradients: from where another one goes on, if it dies."""

from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from .gradient_server import ServerReport, UnitReport


def steps_of(made: Iterable[UnitReport]) -> List[UnitReport]:
    """Those units of which came a step."""
    return [each for each in made if each.report.examples]


class Account:
    """Tells each unit once. A server that takes the place of another goes on from a snapshot:
    it owes the units that were told since, and none is told when it is made anew.

    saved (Dict[str, Any]): The last snapshot (``GradientServer.snapshot``).
    n_told (int): Steps that were told.
    owed (Set[int]): Units that were told, and that this server has to make anew.
    """

    def __init__(self, saved: Dict[str, Any]):
        self.saved, self.n_told = saved, 0
        self.owed: Set[int] = set()
        # Since the snapshot.
        self._told: Set[int] = set()
        # Of the epoch: a fact of the data, which stays when a server dies.
        self._end: Optional[int] = None

    def save(self, snapshot: Dict[str, Any]) -> None:
        """The server's of now."""
        self.saved, self._told = snapshot, set(self.owed)

    def start_epoch(self, snapshot: Dict[str, Any]) -> None:
        """An epoch has begun; nothing of the last one is owed."""
        self.save(snapshot)
        self._end = None

    def new(self, told: ServerReport) -> List[UnitReport]:
        """What was not told before."""
        new = [each for each in told.made if each.unit not in self.owed]
        units = {each.unit for each in told.made}
        self.owed -= units
        self._told |= units
        if told.end is not None:
            self._end = told.end
        self.n_told += len(steps_of(new))
        return new

    def died(self) -> None:
        """The server is gone."""
        self.owed = set(self._told)

    def start(self) -> Tuple[Dict[str, Any], List[int]]:
        """What a server begins with: a snapshot, and what it owes."""
        saved = self.saved
        if self._end is not None:
            saved = {**saved, "ledger": {**saved["ledger"], "end": self._end}}
        return saved, sorted(self.owed)
