"""The driver's side of the planes through which workers exchange gradients and parameters."""

from itertools import count
from typing import Any, Dict, List, Mapping, Union

from ...ops.alignment import aligned_zeros
from ..mapped_arrays import MappedArrays
from .shared_memory import shared_memory
from .shared_plane import VALUES, abort, shared_layout
from .slots import Slots

# Numbers for each time that workers join to exchange messages.
_eras = count(1)


class SharedPlanes:
    """Connect this process with workers on the same machine. Weights and optimizer state are in
    memory that all of them share, so nothing is copied.

    runner (RayRunner): Runner of the run.
    memory (MappedArrays): Memory with a ``shared_layout``, which workers have opened.
    kept (List[str]): Names of the arrays that the optimizer has so far.
    """

    def __init__(self, runner: Any, memory: MappedArrays, kept: List[str]):
        self.runner, self.memory = runner, memory
        runner.learner.use_weights(memory.arrays[VALUES])
        runner.learner.weights_changed()
        self.made(kept)

    def made(self, kept: List[str]) -> None:
        """Record that workers made steps. ``kept`` names the arrays that the optimizer now has."""
        self.runner.bind(self.memory.arrays, kept)

    def gather(self) -> None:
        """Do nothing, because this process sees the changes of workers."""

    def abort(self) -> None:
        """Make workers stop waiting for each other."""
        abort(self.memory)

    def close(self) -> None:
        """Release the memory."""
        self.memory.close()


class StorePlanes:
    """Connect this process with workers on several machines, which exchange messages through Ray.
    Weights and state are copied to the workers, and copied back when they are needed.

    runner (RayRunner): Runner of the run.
    team (Team): The workers.
    slots (Slots): Assignment of microbatches to workers.
    snapshot (Mapping[str, Any]): State that workers begin with (``RayRunner.snapshot``).
    """

    def __init__(self, runner: Any, team: Any, slots: Slots, snapshot: Mapping[str, Any]):
        self.runner, self.team = runner, team
        self._is_behind = False
        self.arrays: Dict[str, Any] = {}
        runner.take_over(snapshot, self.arrays)
        self._era, self._actors = next(_eras), list(team.actors)
        put, numbers = team.ray.put, list(range(slots.n_workers))
        given = [put(each) for each in (self._actors, snapshot["weights"], snapshot["arrays"])]
        team.each("join_store", numbers, slots, self._era, snapshot["state"], *given)

    def made(self, kept: List[str]) -> None:
        """Record that workers made steps. ``kept`` names the arrays that the optimizer now has."""
        self._is_behind = True
        for name in kept:
            if name not in self.arrays:
                self.arrays[name] = aligned_zeros(len(self.runner.learner.weights))
        self.runner.bind(self.arrays, kept)

    def gather(self) -> None:
        """Copy the current weights and state from the workers, if they have made steps."""
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

    def abort(self) -> None:
        """Make workers stop waiting for each other."""
        for actor in self._actors:
            actor.call.remote("abandon", self._era)

    def close(self) -> None:
        """Do nothing, because no memory is shared."""


Planes = Union[SharedPlanes, StorePlanes]


def make_planes(runner: Any, team: Any, snapshot: Mapping[str, Any]) -> Planes:
    """Connect all workers of a team, with the plane that the settings choose, or with the first
    plane that works.

    runner (RayRunner): Runner of the run.
    team (Team): The workers.
    snapshot (Mapping[str, Any]): State that workers begin with (``RayRunner.snapshot``).
    RAISES (ConfigError): If the chosen plane does not work.
    """
    stretches = runner.learner.parameters.stretches
    slots = Slots(runner.n_microbatches, len(team.actors))
    state = snapshot["state"]

    def join(memory: MappedArrays) -> bool:
        memory.arrays[VALUES][:] = snapshot["weights"]
        for name, array in snapshot["arrays"].items():
            memory.arrays[name][:] = array
        numbers = list(range(slots.n_workers))
        return all(team.each("join_shared", memory.mapping, numbers, slots, state))

    layout = shared_layout(len(snapshot["weights"]), stretches, slots)
    memory = shared_memory(runner.settings["plane"], team, layout, join)
    if memory is None:
        return StorePlanes(runner, team, slots, snapshot)
    return SharedPlanes(runner, memory, state["kept"])
