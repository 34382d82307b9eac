"""The interface through which workers exchange gradients and parameters."""

from typing import Any, Dict, List, Mapping, Sequence, Tuple

import numpy
from thinc.api import to_numpy

from ...ops.alignment import aligned_zeros
from ...optimizers.row_sparse import Rows, Segment
from ...optimizers.state import ARRAYS
from .gradient import Gradient
from .owned import Piece, n_blocks_of
from .slots import Slots


class Aborted(Exception):
    """Raised in a worker that waits for other workers, when they have given up."""


class LonePlane:
    """Serve as the plane of a single worker, and as the base class of planes for several workers. A
    plane is the transport through which workers exchange gradients and parameters; a single worker
    exchanges nothing. All arrays are on the host.

    values (Floats1d): Current values of all parameters, which are copied. The attribute holds the
        parameters as this worker sees them.
    stretches (Sequence[Segment]): Segments that make up the parameters.
    slots (Slots): Assignment of microbatches to workers.
    worker (int): Number of this worker, from 0.
    state (Dict[str, Floats1d]): The optimizer's arrays by name, each as long as ``values``.
    vectors (Dict[int, Floats1d]): For the number of each slot of this worker, the gradient to hand
        over; zero between steps.
    sums (Array1d): Receives the sums of the blocks that this worker owns (see ``Owned.add_up``);
        float64.
    """

    def __init__(self, values: Any, stretches: Sequence[Segment], slots: Slots, worker: int = 0):
        n = len(values)
        self.values: Any = aligned_zeros(n)
        self.values[:] = to_numpy(values)
        self.stretches, self.slots, self.worker = stretches, slots, worker
        self.state: Dict[str, Any] = {name: aligned_zeros(n) for name in ARRAYS}
        self.vectors: Dict[int, Any] = {slot: aligned_zeros(n) for slot in slots.own(worker)}
        self.sums = numpy.zeros(n_blocks_of(stretches))

    def hand_over(
        self, tables: Mapping[int, List[Rows]], weight: int, n_slots: int
    ) -> Tuple[int, List[Gradient]]:
        """Hand over the gradients in this worker's slots, and wait for the slots of all workers.

        tables (Mapping[int, List[Rows]]): For each slot that this worker filled, the gradients of
            its tables.
        weight (int): Total weight of the losses in these slots (see ``StepReport``).
        n_slots (int): Number of slots that all workers together have filled.
        RETURNS (Tuple[int, List[Gradient]]): The weight of all slots, and the gradient of each
            slot. A gradient is valid, and may be changed, only in the pieces that this worker owns.
        """
        return weight, [Gradient(self.vectors[slot], tables[slot]) for slot in range(n_slots)]

    def all_sums(self) -> Any:
        """Wait for the sums of all workers, and return the sums of all blocks."""
        return self.sums

    def stepped(self, pieces: Sequence[Piece], rows: Mapping[int, Any]) -> None:
        """Hand over the changed parameters in this worker's pieces, and wait for all workers.

        pieces (Sequence[Piece]): The pieces that this worker owns.
        rows (Mapping[int, array]): For the number of a table, the rows of its piece that have
            changed; all rows of other tables may have changed.
        """
