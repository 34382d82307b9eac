"""Workers that make each step together, and repeat what they did since a snapshot if one dies."""

from typing import Any, Dict, List, Mapping, Tuple

from ...optimizers.state import ARRAYS
from ...teachers import Teacher
from .crew_planes import make_planes
from .ray_cluster import Died
from .ray_runner import RayRunner
from .remote_crew import RemoteCrew
from .slots import Slots

# A call of workers that changes where they are: its name and what it is given.
Call = Tuple[Any, ...]


class RemotePeers(RemoteCrew):
    """Workers in processes that Ray watches. If one dies, all go back to the last snapshot and
    repeat the calls since: the same bits come of them."""

    def __init__(self, runner: RayRunner, teacher: Teacher):
        self.calls: List[Call] = []
        self._kept: List[str] = []
        self.step = self.saved_step = 0
        self.planes: Any = None
        super().__init__(runner, teacher)

    def _begin(self) -> None:
        self._join()
        self.stretches = self.learner.parameters.stretches  # type: ignore[attr-defined]
        self._form()
        self._snapshot()

    def _form(self) -> None:
        """All that are there work together from here on, with the weights and the state that
        this process sees."""
        self._weave(self.runner.optimizer_state(), {})

    def _weave(self, state: Mapping[str, Any], saved: Mapping[str, Any]) -> None:
        old = self.planes
        slots = Slots(self.runner.n_microbatches, len(self.team.actors))
        self.planes = make_planes(self.runner, self.team, slots, self.stretches)
        self.team.abort = self.planes.abort
        if saved:
            self.planes.fill(saved["weights"], saved["arrays"])
        self.planes.join(state)
        if old is not None:
            old.close()

    # --- calls, which are repeated if somebody dies ----------------------------------------

    def do(self, call: str, *given: Any) -> List[Any]:
        """Call a method of every worker that moves them on."""
        answers = self.surely(lambda: self.team.each(call, *given))
        self.calls.append((call, *given))
        return answers

    def _replace(self, death: Died) -> str:
        """Go back to the snapshot without the dead, and repeat what was done since; others are
        started meanwhile."""
        self.team.remove(death.workers)
        self._fill_up()
        self._weave(self._saved["state"], self._saved)
        self.team.each("go_to", self._saved["place"])
        for call in self.calls:
            self.team.each(*call)
        # This process sees what it saw.
        self.planes.made(self._kept)
        self.planes.gather()
        n = len(self.team.actors)
        return f"worker {death.names} died: {n} go on from step {self.saved_step:,}"

    # --- snapshots ------------------------------------------------------------------------

    def made(self, step: int, kept: List[str]) -> None:
        """Steps were made."""
        self.step, self._kept = step, kept
        self.planes.made(kept)
        if len(self.team.actors) < self.runner.num_workers:
            self.surely(self._take_in)
        if step - self.saved_step >= self.runner.settings["snapshot_every"]:
            self.surely(self._snapshot)

    def _take_in(self) -> None:
        """Let those work with the others that have started again."""
        if self.team.started():
            self._snapshot()
            if self.team.join():
                self._form()
                self.team.each("go_to", self._saved["place"])
        self._fill_up()

    def _snapshot(self) -> None:
        place = self.team.each("place")[0]
        self.planes.gather()
        arrays = {name: self.runner.kept(name) for name in ARRAYS}
        self._saved = {
            "place": place,
            "weights": self.learner.weights.copy(),
            "arrays": {name: array.copy() for name, array in arrays.items() if array is not None},
            "state": self.runner.optimizer_state(),
        }
        self.saved_step, self.calls = self.step, []

    def gather(self) -> None:
        """Let this process see weights and state as they are."""
        self.surely(lambda: self.planes.gather())  # Of those who are there by then.

    def _to_evaluate(self, weights: Any) -> Any:
        self.learner.weights[:] = weights
        self.learner.weights_changed()
        return self.planes.to_evaluate(weights)

    def state(self) -> Dict[str, Any]:
        """Of the world."""
        return self.surely(lambda: self.team.each("state"))[0]

    def end(self) -> None:
        self.team.end()
        if self.planes is not None:
            self.planes.close()
        self.cluster.close()
