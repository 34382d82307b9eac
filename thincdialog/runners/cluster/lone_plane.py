"""What workers exchange, and how it is when there is but one."""

from typing import Any, Dict, List, Mapping, Sequence, Tuple

import numpy
from thinc.api import get_array_module

from ...ops.alignment import aligned_zeros
from ...optimizers.row_sparse import Rows, Segment
from ...optimizers.state import ARRAYS
from .gradient import Gradient
from .owned import Piece, n_blocks_of
from .slots import Slots


class Aborted(Exception):
    """Others have given up; nobody is waited for any more."""


class LonePlane:
    """Of one worker: what it hands over is what there is. The base of those of several. Arrays
    are where the model computes.

    values (Floats1d): All parameters, as this worker sees them.
    state (Dict[str, Floats1d]): For what an optimizer keeps: as long as these.
    vectors (Dict[int, Floats1d]): For each own slot, by its number, the gradient that goes
        out; zero between steps.
    stretches (Sequence[Segment]): Of the parameters.
    """

    def __init__(self, values: Any, stretches: Sequence[Segment], slots: Slots, worker: int = 0):
        self.values, self.stretches, self.slots, self.worker = values, stretches, slots, worker
        n, xp = len(values), get_array_module(values)
        self.state: Dict[str, Any] = {name: aligned_zeros(n, xp) for name in ARRAYS}
        own = slots.own(worker)
        self.vectors: Dict[int, Any] = {slot: aligned_zeros(n, xp) for slot in own}
        self.n_blocks = n_blocks_of(stretches)

    def hand_over(
        self, tables: Mapping[int, List[Rows]], weight: int, n_slots: int
    ) -> Tuple[int, List[Gradient]]:
        """The own slots hold what was learnt; wait for those of all.

        tables (Mapping[int, List[Rows]]): For each own slot that was filled those of its tables.
        weight (int): Of the losses in the own slots (see ``StepReport``).
        n_slots (int): How many all have filled.
        RETURNS (Tuple[int, List[Gradient]]): The weight of all, and the gradients of all slots,
            which are there for the own pieces; these may be changed.
        """
        return weight, [Gradient(self.vectors[slot], tables[slot]) for slot in range(n_slots)]

    def sums(self) -> Any:
        """Where each worker writes the sums of its blocks, float64, on the host."""
        return numpy.zeros(self.n_blocks)

    def all_sums(self, sums: Any) -> Any:
        """Wait for those of all."""
        return sums

    def stepped(self, pieces: Sequence[Piece], rows: Mapping[int, Any]) -> None:
        """The own pieces of ``values`` are changed; wait for those of all.

        rows (Mapping[int, array]): Of tables by their numbers: rows of the piece that alone
            have changed.
        """
