"""The planes of a run's workers, as the run's process sees them."""

from typing import Any, Dict, List, Mapping, Sequence

from ...errors import ConfigError, Problem
from ...ops.alignment import aligned_zeros
from ...optimizers.row_sparse import Segment
from .mapped_arrays import MappedArrays
from .shared_memory import shared_memory
from .shared_plane import VALUES, abort, shared_layout
from .slots import Slots


class Planes:
    """Brings the weights and the optimizer's state of a run to its workers, and back.

    runner (RayRunner): The run's.
    """

    def __init__(self, runner: Any):
        self.runner, self.learner = runner, runner.learner

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
    """On one machine: all see the same memory.

    memory (MappedArrays): Of ``shared_layout``; workers have opened it.
    """

    def __init__(self, runner: Any, memory: MappedArrays, kept: List[str]):
        super().__init__(runner)
        self.memory = memory
        self.learner.use_weights(memory.arrays[VALUES])
        self.learner.weights_changed()
        self.made(kept)

    def made(self, kept: List[str]) -> None:
        self.runner.bind(self.memory.arrays, kept)

    def abort(self) -> None:
        abort(self.memory)

    def close(self) -> None:
        self.memory.close()


class GatheredPlanes(Planes):
    """What workers see is on several machines, or on GPUs: it goes to them, and comes back when it
    is wanted. The base of those that know how they find each other.

    snapshot (Mapping[str, Any]): What they begin with (``RayRunner.snapshot``).
    """

    def __init__(self, runner: Any, team: Any, snapshot: Mapping[str, Any]):
        super().__init__(runner)
        self.team, self._is_behind = team, False
        self.arrays: Dict[str, Any] = {}
        self.runner.take_over(snapshot, self.arrays)

    def made(self, kept: List[str]) -> None:
        self._is_behind = True
        for name in kept:
            if name not in self.arrays:
                self.arrays[name] = aligned_zeros(len(self.learner.weights))
        self.runner.bind(self.arrays, kept)

    def gather(self) -> None:
        if not self._is_behind:
            return
        learner = self.learner
        for pieces in self.team.each("pieces"):
            for now, values, kept in pieces:
                learner.weights[now] = values
                for name, array in kept.items():
                    self.arrays[name][now] = array
        learner.weights_changed()
        self._is_behind = False

    def to_evaluate(self, weights: Any) -> Any:
        return self.team.ray.put(weights)


class GpuPlanes(GatheredPlanes):
    """On GPUs of one machine, by way of memory that all see.

    memory (MappedArrays): See ``SharedPlanes``.
    """

    def __init__(self, runner: Any, team: Any, snapshot: Mapping[str, Any], memory: MappedArrays):
        super().__init__(runner, team, snapshot)
        self.memory = memory

    def abort(self) -> None:
        abort(self.memory)

    def close(self) -> None:
        self.memory.close()


class StorePlanes(GatheredPlanes):
    """By way of Ray, wherever workers are."""

    _eras = 0
    # Tells a worker how to find the others.
    _join = "join_store"

    def __init__(self, runner: Any, team: Any, slots: Slots, snapshot: Mapping[str, Any]):
        super().__init__(runner, team, snapshot)
        StorePlanes._eras += 1
        self._era, self._actors = StorePlanes._eras, list(team.actors)
        ray, numbers = team.ray, list(range(slots.n_workers))
        weights, arrays = ray.put(snapshot["weights"]), ray.put(snapshot["arrays"])
        state, others = snapshot["state"], ray.put(self._met())
        team.abort = self.abort  # They may wait for one who dies as they join.
        team.each(self._join, numbers, slots, others, self._era, state, weights, arrays)

    def _met(self) -> Any:
        """By what workers find each other."""
        return self._actors

    def abort(self) -> None:
        for actor in self._actors:
            actor.call.remote("abandon", self._era)


class NcclPlanes(StorePlanes):
    """By way of NCCL, from GPU to GPU."""

    _join = "join_nccl"

    def _met(self) -> Any:
        first = self.team.actors[0].call.remote("unique_id")
        return self.team.wait({first: 0})[0]


def make_planes(
    runner: Any, team: Any, stretches: Sequence[Segment], snapshot: Mapping[str, Any]
) -> Planes:
    """Let all workers of a team begin together, by the plane that the settings ask for, or the
    first that goes.

    snapshot (Mapping[str, Any]): What they begin with (``RayRunner.snapshot``).
    RAISES (ConfigError): If it does not go.
    """
    slots = Slots(runner.n_microbatches, len(team.actors))
    state = snapshot["state"]

    def join(memory: MappedArrays) -> bool:
        memory.arrays[VALUES][:] = snapshot["weights"]
        for name, array in snapshot["arrays"].items():
            memory.arrays[name][:] = array
        numbers = list(range(slots.n_workers))
        return all(team.each("join_shared", memory.mapping, numbers, slots, state))

    if _takes_nccl(runner, team):
        return NcclPlanes(runner, team, slots, snapshot)
    layout = shared_layout(len(snapshot["weights"]), stretches, slots)
    memory = shared_memory(runner.settings["plane"], team, layout, join)
    if memory is None:
        return StorePlanes(runner, team, slots, snapshot)
    if runner.settings["num_gpus_per_worker"]:
        return GpuPlanes(runner, team, snapshot, memory)
    return SharedPlanes(runner, memory, state["kept"])


def _takes_nccl(runner: Any, team: Any) -> bool:
    """Whether workers exchange through NCCL.

    RAISES (ConfigError): If they are to, and cannot.
    """
    plane, n_gpus = runner.settings["plane"], runner.settings["num_gpus_per_worker"]
    if plane not in ("auto", "nccl") or n_gpus < 1:
        return False
    reasons = [reason for reason in team.each("why_no_nccl") if reason]
    if reasons and plane == "nccl":
        text = f'[runner] plane = "nccl" does not go: {reasons[0]} where workers are'
        raise ConfigError([Problem("", text, 'install it for CuPy, or set "auto"')])
    return not reasons
