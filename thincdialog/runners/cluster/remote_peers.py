"""Workers of synchronous training, in processes that Ray watches."""

from typing import Any, Dict, List, Mapping, Tuple

from ...teachers import Teacher
from .crew_planes import StorePlanes, make_planes
from .ray_runner import RayRunner
from .remote_crew import RemoteCrew
from .team import Died

# A call that changes the state of workers: the method's name and its arguments.
Call = Tuple[Any, ...]


class RemotePeers(RemoteCrew):
    """Run workers that make each step together. If one dies, the others go back to the last
    snapshot and repeat the calls since then, with the same result bit for bit."""

    def __init__(self, runner: RayRunner, teacher: Teacher):
        self.calls: List[Call] = []
        self._kept: List[str] = []
        self.step = self.saved_step = 0
        self.planes: Any = None
        super().__init__(runner, teacher)

    def _begin(self) -> None:
        super()._begin()
        self._saved = self.runner.snapshot()
        self._weave(self._saved)
        self._snapshot()

    def _weave(self, snapshot: Mapping[str, Any]) -> None:
        """Connect all current workers, beginning with a snapshot."""
        old = self.planes
        try:
            self.planes = make_planes(self.runner, self.team, snapshot)
            self.team.abort = self.planes.abort
        finally:
            if old is not None:
                old.close()

    # --- calls, which are repeated if a worker dies ----------------------------------------

    def do(self, call: str, *given: Any) -> List[Any]:
        """Call a method that changes the state of every worker, and return the results."""
        answers = self.surely(lambda: self.team.each(call, *given))
        self.calls.append((call, *given))
        return answers

    def _replace(self, death: Died) -> str:
        """Go back to the snapshot without the dead workers, and repeat the calls since then. New
        workers start meanwhile."""
        self.team.remove(death.workers)
        self._fill_up()
        self._weave(self._saved)
        self.team.each("go_to", self._saved["place"])
        for call in self.calls:
            self.team.each(*call)
        # Give this process the weights and state that it had before.
        self.planes.made(self._kept)
        self.planes.gather()
        n, step = len(self.team.actors), self.saved_step
        others = "1 worker" if n == 1 else f"{n} workers"
        return f"{death.who} died: resumed with {others} from step {step:,}"

    # --- snapshots ------------------------------------------------------------------------

    def made(self, step: int, kept: List[str]) -> None:
        """Record that steps were made, take in new workers, and save a snapshot if it is due.

        step (int): Number of steps so far.
        kept (List[str]): Names of the arrays that the optimizer has now.
        """
        self.step, self._kept = step, kept
        self.planes.made(kept)
        if len(self.team.actors) < self.runner.num_workers:
            self.surely(self._take_in)
        if step - self.saved_step >= self.runner.settings["snapshot_every"]:
            self.surely(self._snapshot)

    def _take_in(self) -> None:
        """Add new workers that have started to the others, and start missing ones."""
        if self.team.has_started():
            self._snapshot()
            if self.team.join():
                self._weave(self._saved)
                self.team.each("go_to", self._saved["place"])
        self._fill_up()

    def _snapshot(self) -> None:
        place = self.team.each("place")[0]
        self.planes.gather()
        self._saved = {"place": place, **self.runner.snapshot(self._saved)}
        self.saved_step, self.calls = self.step, []

    def gather(self) -> None:
        """Get the current weights and state from the workers."""
        self.surely(lambda: self.planes.gather())  # A recovery replaces ``planes``.

    def _to_evaluate(self, weights: Any) -> Any:
        self.learner.weights[:] = weights
        self.learner.weights_changed()
        # Workers without GPUs have these weights in shared memory.
        has_copies = self.n_gpus or isinstance(self.planes, StorePlanes)
        return self.ray.put(weights) if has_copies else None

    def place(self) -> Dict[str, Any]:
        """Return the position in the epoch (see ``Peer.place``), the same for all workers."""
        return self.surely(lambda: self.team.each("place"))[0]

    def _close(self) -> None:
        if self.planes is not None:
            self.planes.close()
