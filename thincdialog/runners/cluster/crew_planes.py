"""The driver's side of a plane, by which workers exchange gradients and parameters."""

from functools import partial
from itertools import count
from typing import Any, Callable, Dict, List, Mapping, Sequence, Union

from ...errors import ConfigError, Problem
from ...ops.alignment import aligned_zeros
from ...optimizers.row_sparse import Segment
from ..mapped_arrays import MappedArrays
from .shared_memory import shared_memory
from .shared_plane import VALUES, abort, shared_layout
from .slots import Slots

# Numbers of the times that workers joined to exchange messages.
_eras = count(1)


class SharedPlanes:
    """Workers on one machine, whose weights and optimizer state are in memory that this process
    shares: nothing is copied.

    runner (RayRunner): The run's.
    memory (MappedArrays): Has a ``shared_layout``; workers have opened it.
    kept (List[str]): Names of the optimizer's arrays so far.
    """

    def __init__(self, runner: Any, memory: MappedArrays, kept: List[str]):
        self.runner, self.memory = runner, memory
        runner.learner.use_weights(memory.arrays[VALUES])
        runner.learner.weights_changed()
        self.made(kept)

    def made(self, kept: List[str]) -> None:
        """Note that steps were made, and that the optimizer has the arrays ``kept``."""
        self.runner.bind(self.memory.arrays, kept)

    def gather(self) -> None:
        """Do nothing: this process sees the changes of workers."""

    def to_evaluate(self, weights: Any) -> Any:
        """Return the argument from which workers get these weights; None if they have them."""
        return None

    def abort(self) -> None:
        """Let no worker wait for another one any longer."""
        abort(self.memory)

    def close(self) -> None:
        """Release memory."""
        self.memory.close()


class GatheredPlanes:
    """Workers on several machines, or on GPUs: weights and state are copied to them, and back when
    they are needed.

    team (Team): The workers.
    snapshot (Mapping[str, Any]): State that workers begin with (``RayRunner.snapshot``).
    abort (Callable[[], None]): Lets no worker wait for another one any longer.
    close (Callable[[], None]): Releases memory.
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
        """Note that steps were made, and that the optimizer has the arrays ``kept``."""
        self._is_behind = True
        for name in kept:
            if name not in self.arrays:
                self.arrays[name] = aligned_zeros(len(self.runner.learner.weights))
        self.runner.bind(self.arrays, kept)

    def gather(self) -> None:
        """Show this process the changes of workers."""
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
        """Return the argument from which workers get these weights."""
        return self.team.ray.put(weights)


Planes = Union[SharedPlanes, GatheredPlanes]


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
    """Let workers exchange messages from now on, through Ray or NCCL.

    join (str): The method of a worker that connects it with the others.
    others (Any): The argument by which it finds them.
    """
    era, actors, ray = next(_eras), list(team.actors), team.ray

    def abandon() -> None:
        for actor in actors:
            actor.call.remote("abandon", era)

    planes = GatheredPlanes(runner, team, snapshot, abandon)
    team.abort = abandon  # A worker may die while others wait for it to join.
    state = [ray.put(snapshot[name]) for name in ("weights", "arrays")]
    numbers = list(range(slots.n_workers))
    team.each(join, numbers, slots, ray.put(others), era, snapshot["state"], *state)
    return planes


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
