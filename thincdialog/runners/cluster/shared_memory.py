"""The creation of memory that a run's process shares with its workers."""

from typing import Any, Callable, Optional

from ...errors import ConfigError, Problem
from ..mapped_arrays import Layout, MappedArrays
from .team import Team


def shared_memory(
    plane: str, team: Team, layout: Layout, join: Callable[[MappedArrays], Any]
) -> Optional[MappedArrays]:
    """Return memory that all workers have opened; None if they have to exchange data in another
    way.

    plane (str): The setting: "store" allows no shared memory, "shm" requires it.
    team (Team): The workers.
    layout (Layout): Layout of the memory.
    join (Callable[[MappedArrays], bool]): Function that makes workers open the memory, and returns
        whether all of them can.
    RAISES (ConfigError): If memory cannot be shared, and ``plane`` is "shm".
    """
    if plane == "store":
        return None
    nodes = {*team.each("node"), team.cluster.node}
    reason = f"works on one machine only, but the run uses {len(nodes)}"
    if len(nodes) == 1:
        reason = "does not work: workers cannot open the memory of the run's process"
        for is_named in (False, True):
            memory, is_open = MappedArrays(layout, is_named), False
            try:
                is_open = join(memory)
            finally:
                memory.forget() if is_open else memory.close()
            if is_open:
                return memory
    if plane == "shm":
        text = f'[runner] plane = "shm" {reason}'
        raise ConfigError([Problem("", text, 'set "auto" or "store"')])
    return None
