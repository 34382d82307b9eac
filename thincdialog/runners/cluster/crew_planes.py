"""The driver's side of the planes through which workers exchange gradients and parameters."""

from functools import partial
from itertools import count
from typing import Any, Callable, Dict, List, Mapping, Union

from ...errors import ConfigError, Problem
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

    def to_evaluate(self, weights: Any) -> Any:
        """Return None, because workers have these weights."""
        return None

    def abort(self) -> None:
        """Make workers stop waiting for each other."""
        abort(self.memory)

    def close(self) -> None:
        """Release the memory."""
        self.memory.close()


class GatheredPlanes:
    """Connect this process with workers on several machines, or on GPUs. Weights and state are
    copied to the workers, and copied back when they are needed.

    runner (RayRunner): Runner of the run.
    team (Team): The workers.
    snapshot (Mapping[str, Any]): State that workers begin with (``RayRunner.snapshot``).
    abort (Callable[[], None]): Function that makes workers stop waiting for each other.
    close (Callable[[], None]): Function that releases memory.
    """

    def __init__(
        self,
        runner: Any,
        team: Any,
        snapshot: Mapping[str, Any],
        abort: Callable[[], None],
        close: Callable[[], None] = lambda: None,
    ):
        self.runner, self.team, self.abort, self.close = runner, team, abort, close
        self._is_behind = False
        self.arrays: Dict[str, Any] = {}
        runner.take_over(snapshot, self.arrays)

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

    def to_evaluate(self, weights: Any) -> Any:
        """Return a reference with which workers get these weights."""
        return self.team.ray.put(weights)


Planes = Union[SharedPlanes, GatheredPlanes]


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

    if _takes_nccl(runner, team):
        first = team.actors[0].call.remote("unique_id")
        meeting = team.wait({first: 0})[0]
        return _joined_by_messages(runner, team, slots, snapshot, "join_nccl", meeting)
    layout = shared_layout(len(snapshot["weights"]), stretches, slots)
    memory = shared_memory(runner.settings["plane"], team, layout, join)
    if memory is None:
        others = list(team.actors)
        return _joined_by_messages(runner, team, slots, snapshot, "join_store", others)
    if runner.settings["num_gpus_per_worker"]:
        return GatheredPlanes(runner, team, snapshot, partial(abort, memory), memory.close)
    return SharedPlanes(runner, memory, state["kept"])


def _joined_by_messages(
    runner: Any, team: Any, slots: Slots, snapshot: Mapping[str, Any], join: str, others: Any
) -> GatheredPlanes:
    """Connect workers so that they exchange messages through Ray or NCCL.

    join (str): Method of ``WorkerActor`` that connects a worker with the others.
    others (Any): The argument with which this method finds the others.
    """
    era, actors, ray = next(_eras), list(team.actors), team.ray

    def abandon() -> None:
        for actor in actors:
            actor.call.remote("abandon", era)

    planes = GatheredPlanes(runner, team, snapshot, abandon)
    team.abort = abandon  # Also if a worker dies while others wait for it to join.
    state = [ray.put(snapshot[name]) for name in ("weights", "arrays")]
    numbers = list(range(slots.n_workers))
    team.each(join, numbers, slots, ray.put(others), era, snapshot["state"], *state)
    return planes


def _takes_nccl(runner: Any, team: Any) -> bool:
    """Return whether workers are to exchange data through NCCL.

    RAISES (ConfigError): If the settings choose NCCL, but workers cannot use it.
    """
    plane, n_gpus = runner.settings["plane"], runner.settings["num_gpus_per_worker"]
    if plane not in ("auto", "nccl") or n_gpus < 1:
        return False
    reasons = [reason for reason in team.each("why_no_nccl") if reason]
    if reasons and plane == "nccl":
        text = f'[runner] plane = "nccl" does not work on the workers: {reasons[0]}'
        raise ConfigError([Problem("", text, 'install NCCL for CuPy, or set "auto"')])
    return not reasons
