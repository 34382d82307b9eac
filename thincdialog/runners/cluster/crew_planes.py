"""The driver's side of a plane, by which workers exchange gradients and parameters."""

from typing import Any, Dict, List, Mapping, Sequence

from ...errors import ConfigError, Problem
from ...ops.alignment import aligned_zeros
from ...optimizers.row_sparse import Segment
from ..mapped_arrays import MappedArrays
from .shared_memory import shared_memory
from .shared_plane import VALUES, abort, shared_layout
from .slots import Slots


class Planes:
    """Copies the weights and the optimizer's state of a run to its workers, and back.

    runner (RayRunner): The run's.
    """

    def __init__(self, runner: Any):
        self.runner, self.learner = runner, runner.learner

    def made(self, kept: List[str]) -> None:
        """Note that steps were made, and that the optimizer has the arrays ``kept``."""

    def gather(self) -> None:
        """Show this process the changes of workers."""

    def to_evaluate(self, weights: Any) -> Any:
        """Return the argument from which workers get these weights; None if they have them."""
        return None

    def abort(self) -> None:
        """Let no worker wait for another one any longer."""

    def close(self) -> None:
        """Release memory."""


class SharedPlanes(Planes):
    """Workers on one machine: all share memory.

    memory (MappedArrays): Has a ``shared_layout``; workers have opened it.
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
    """Workers on several machines, or on GPUs: weights and state are copied to them, and back when
    they are needed. A subclass connects the workers.

    snapshot (Mapping[str, Any]): State that workers begin with (``RayRunner.snapshot``).
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
    """Workers with GPUs on one machine, which exchange through shared memory.

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
    """Workers on any machines, which exchange through Ray."""

    _eras = 0
    # The method of a worker that connects it with the others.
    _join = "join_store"

    def __init__(self, runner: Any, team: Any, slots: Slots, snapshot: Mapping[str, Any]):
        super().__init__(runner, team, snapshot)
        StorePlanes._eras += 1
        self._era, self._actors = StorePlanes._eras, list(team.actors)
        ray, numbers = team.ray, list(range(slots.n_workers))
        weights, arrays = ray.put(snapshot["weights"]), ray.put(snapshot["arrays"])
        state, others = snapshot["state"], ray.put(self._met())
        team.abort = self.abort  # A worker may die while others wait for it to join.
        team.each(self._join, numbers, slots, others, self._era, state, weights, arrays)

    def _met(self) -> Any:
        """Return the argument by which workers connect."""
        return self._actors

    def abort(self) -> None:
        for actor in self._actors:
            actor.call.remote("abandon", self._era)


class NcclPlanes(StorePlanes):
    """Workers with a GPU each, which exchange through NCCL, from GPU to GPU."""

    _join = "join_nccl"

    def _met(self) -> Any:
        first = self.team.actors[0].call.remote("unique_id")
        return self.team.wait({first: 0})[0]


def make_planes(
    runner: Any, team: Any, stretches: Sequence[Segment], snapshot: Mapping[str, Any]
) -> Planes:
    """Let all workers of a team begin together, with the plane that the settings choose, or the
    first that works.

    snapshot (Mapping[str, Any]): State that workers begin with (``RayRunner.snapshot``).
    RAISES (ConfigError): If the chosen plane does not work.
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
    """Return whether workers exchange through NCCL.

    RAISES (ConfigError): If the settings choose NCCL, but workers cannot use it.
    """
    plane, n_gpus = runner.settings["plane"], runner.settings["num_gpus_per_worker"]
    if plane not in ("auto", "nccl") or n_gpus < 1:
        return False
    reasons = [reason for reason in team.each("why_no_nccl") if reason]
    if reasons and plane == "nccl":
        text = f'[runner] plane = "nccl" does not go: {reasons[0]} where workers are'
        raise ConfigError([Problem("", text, 'install it for CuPy, or set "auto"')])
    return not reasons
