"""The planes of a run's workers, as the run's process sees them."""

from typing import Any, Dict, List, Mapping, Sequence

from ...errors import ConfigError, DialogError, Problem
from ...ops.alignment import aligned_zeros
from ...optimizers.row_sparse import Part
from ...optimizers.state import ARRAYS
from .mapped_arrays import MappedArrays
from .shared_plane import VALUES, abort, shared_layout
from .slots import Slots


class Planes:
    """Brings the weights and the optimizer's state of a run to its workers, and back.

    runner (RayRunner): The run's.
    team (Team): The workers.
    """

    def __init__(self, runner: Any, team: Any, slots: Slots, stretches: Sequence[Part]):
        self.runner, self.team, self.slots, self.stretches = runner, team, slots, stretches

    def fill(self, weights: Any, arrays: Mapping[str, Any]) -> None:
        """Begin with other weights and state than this process sees."""
        self.weights, self.arrays = weights, dict(arrays)

    def join(self, state: Mapping[str, Any]) -> None:
        """Let workers begin.

        state (Mapping[str, Any]): Of the optimizer, without arrays.
        """
        raise NotImplementedError

    def made(self, kept: List[str]) -> None:
        """Steps were made, and the optimizer keeps these arrays."""

    def gather(self) -> None:
        """Let this process see what workers have changed."""

    def to_evaluate(self, weights: Any) -> Any:
        """What workers are given so that they answer with these weights."""
        return None

    def abort(self) -> None:
        """Let no worker wait for another."""

    def close(self) -> None:
        """Let go of it."""


class SharedPlanes(Planes):
    """On one machine: all see the same memory."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        runner = self.runner
        kept = {name: runner.kept(name) for name in ARRAYS}
        arrays = {name: array for name, array in kept.items() if array is not None}
        self.fill(runner.learner.weights, arrays)
        self.memory: Any = None

    def join(self, state: Mapping[str, Any]) -> None:
        layout = shared_layout(len(self.weights), self.stretches, self.slots)
        for is_named in (False, True):
            self._lay_out(MappedArrays(layout, is_named))
            numbers = list(range(self.slots.n_workers))
            found = self.team.each("join_shared", self.memory.mapping, numbers, self.slots, state)
            self.memory.forget()
            if all(found):
                break
        else:
            raise DialogError(
                '[runner] workers cannot open the memory of the run\'s process: set plane = "store"'
            )
        learner = self.runner.learner
        learner.use_weights(self.memory.arrays[VALUES])
        learner.weights_changed()
        self.made(state["kept"])
        self.weights, self.arrays = None, {}

    def _lay_out(self, memory: MappedArrays) -> None:
        self.memory = memory
        memory.arrays[VALUES][:] = self.weights
        for name, array in self.arrays.items():
            memory.arrays[name][:] = array

    def made(self, kept: List[str]) -> None:
        self.runner.bind(self.memory.arrays, kept)

    def abort(self) -> None:
        if self.memory is not None:
            abort(self.memory)

    def close(self) -> None:
        if self.memory is not None:
            self.memory.close()


class StorePlanes(Planes):
    """On several machines: what workers see goes to them, and comes back when it is wanted."""

    _eras = 0

    def __init__(self, *given: Any):
        super().__init__(*given)
        learner = self.runner.learner
        self.weights = learner.weights
        self.arrays: Dict[str, Any] = {}
        for name in ARRAYS:
            array = self.runner.kept(name)
            if array is not None:
                self.arrays[name] = array
        self._is_behind = False
        self._actors: List[Any] = []

    def join(self, state: Mapping[str, Any]) -> None:
        StorePlanes._eras += 1
        ray, team = self.team.ray, self.team
        if self.weights is not self.runner.learner.weights:
            self.runner.learner.weights[:] = self.weights
        # What is gathered goes into them: a snapshot stays as it is.
        self.arrays = {name: array.copy() for name, array in self.arrays.items()}
        self.runner.bind(self.arrays, list(self.arrays))
        weights, arrays = ray.put(self.weights), ray.put(self.arrays)
        numbers = list(range(self.slots.n_workers))
        self._actors = list(team.actors)
        others = ray.put(self._actors)
        era = self._era = StorePlanes._eras
        team.each("join_store", numbers, self.slots, others, era, state, weights, arrays)

    def made(self, kept: List[str]) -> None:
        self._is_behind = True
        known = self.runner.learner.weights
        for name in kept:
            if name not in self.arrays:
                self.arrays[name] = aligned_zeros(len(known))
        self.runner.bind(self.arrays, kept)

    def gather(self) -> None:
        if not self._is_behind:
            return
        learner = self.runner.learner
        for pieces in self.team.each("pieces"):
            for now, values, kept in pieces:
                learner.weights[now] = values
                for name, array in kept.items():
                    self.arrays[name][now] = array
        learner.weights_changed()
        self._is_behind = False

    def to_evaluate(self, weights: Any) -> Any:
        return self.team.ray.put(weights)

    def abort(self) -> None:
        for actor in self._actors:
            actor.call.remote("abandon", self._era)


def make_planes(runner: Any, team: Any, slots: Slots, stretches: Sequence[Part]) -> Planes:
    """The planes that the settings ask for, or the first that goes.

    RAISES (ConfigError): If it does not go.
    """
    wanted: str = runner.settings["plane"]
    nodes = {*team.each("node"), team.cluster.node}
    if wanted == "shm" and len(nodes) > 1:
        text = f'[runner] plane = "shm" is for one machine, but workers are on {len(nodes)}'
        raise ConfigError([Problem("", text, 'set "auto" or "store"')])
    kind = SharedPlanes if len(nodes) == 1 and wanted != "store" else StorePlanes
    return kind(runner, team, slots, stretches)
