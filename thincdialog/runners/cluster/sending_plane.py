"""The base class of planes through which workers send each other pieces of their gradients."""

from typing import Any, Dict, Iterable, List, Sequence, Union

from thinc.api import get_array_module

from ...ops.alignment import aligned_zeros
from ...optimizers.row_sparse import Rows, Segment
from .gradient import Gradient
from .lone_plane import LonePlane
from .owned import pieces_of
from .slots import Slots


class SendingPlane(LonePlane):
    """Serve as the base class of planes in which each worker sends every other worker the pieces of
    its gradients that the other worker owns, and receives the changed parameters.

    values, stretches, slots, worker: See ``LonePlane``.
    others (List[int]): Numbers of the other workers.
    pieces (List[List[Piece]]): The pieces that each worker owns.
    received (Dict[int, Floats1d]): For each slot of another worker, a vector for its gradient, in
        which only the pieces that this worker owns are used.
    """

    def __init__(self, values: Any, stretches: Sequence[Segment], slots: Slots, worker: int):
        super().__init__(values, stretches, slots, worker)
        workers = range(slots.n_workers)
        self.others = [other for other in workers if other != worker]
        self.pieces = [pieces_of(stretches, each, slots.n_workers) for each in workers]
        xp = get_array_module(values)
        self.received: Dict[int, Any] = {
            slot: aligned_zeros(len(values), xp)
            for slot in range(slots.n_slots)
            if slot not in self.vectors
        }

    def cut(self, other: int, gradient: Gradient) -> List[Union[Any, Rows]]:
        """Return the pieces of a gradient that another worker owns: views of the vector for dense
        pieces, and rows for tables.

        other (int): Number of the other worker.
        gradient (Gradient): A gradient of this worker.
        """
        parts: List[Union[Any, Rows]] = []
        for piece in self.pieces[other]:
            if piece.width:
                rows, values = gradient.tables[piece.table]
                own = piece.rows_among(rows)
                parts.append((rows[own], values[own]))
            else:
                parts.append(gradient.vector[piece.start : piece.stop])
        return parts

    def clear_sent(self, slots: Iterable[int]) -> None:
        """Set the dense pieces that other workers own to zero, in the vectors of these slots."""
        for slot in slots:
            for other in self.others:
                for piece in self.pieces[other]:
                    if not piece.width:
                        self.vectors[slot][piece.start : piece.stop].fill(0)
