"""The interface by which workers exchange gradients and parameters, for a single worker."""

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
    """Other workers have given up, so waiting for them is over."""


class LonePlane:
    """The plane (transport) of a single worker, which exchanges nothing: the base class of planes
    for several workers. Arrays are on the device of the model.

    values (Floats1d): All parameters, as this worker sees them.
    state (Dict[str, Floats1d]): The optimizer's arrays by name, each as long as ``values``.
    vectors (Dict[int, Floats1d]): For each own slot, by its number, the gradient to hand over;
        zero between steps.
    stretches (Sequence[Segment]): Segments that make up the parameters.
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
        """Hand over the gradients in the own slots; wait for the slots of all workers.

        tables (Mapping[int, List[Rows]]): For each own slot that was filled, its tables' gradients.
        weight (int): Total weight of the losses in the own slots (see ``StepReport``).
        n_slots (int): Number of slots that all workers together have filled.
        RETURNS (Tuple[int, List[Gradient]]): The weight of all slots, and the gradient of each
            slot, which is valid for the own pieces, and may be changed there.
        """
        return weight, [Gradient(self.vectors[slot], tables[slot]) for slot in range(n_slots)]

    def sums(self) -> Any:
        """Return an array for the sums of each worker's blocks: float64, on the host."""
        return numpy.zeros(self.n_blocks)

    def all_sums(self, sums: Any) -> Any:
        """Wait for the sums of all workers; RETURNS them."""
        return sums

    def stepped(self, pieces: Sequence[Piece], rows: Mapping[int, Any]) -> None:
        """Hand over the own pieces of ``values``, which have changed; wait for all workers.

        rows (Mapping[int, array]): By the number of a table, the only rows of its piece that
            have changed.
        """
