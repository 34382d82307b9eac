"""The plane of workers that each have a GPU, which sends data directly from GPU to GPU."""

from typing import Any, List, Mapping, Sequence, Tuple

import numpy
from thinc.api import get_array_module

from ...optimizers.row_sparse import Rows, Segment
from .communicator import Communicator
from .gradient import Gradient
from .owned import Piece
from .sending_plane import SendingPlane
from .slots import Slots

# Marks that all rows have changed, instead of their number.
_ALL = -1


class NcclPlane(SendingPlane):
    """Exchange gradients and parameters between GPUs through NCCL. Only the numbers of rows and the
    sums of blocks are copied to the host.

    communicator (Communicator): Communicator that is connected with the other workers.
    values (Floats1d): Current values of all parameters, on the device.
    stretches, slots, worker: See ``LonePlane``.
    """

    def __init__(
        self,
        communicator: Communicator,
        values: Any,
        stretches: Sequence[Segment],
        slots: Slots,
        worker: int,
    ):
        super().__init__(values, stretches, slots, worker)
        self._with, self._xp = communicator, get_array_module(values)
        self._widths = [part.width for part in stretches if part.width]
        # The largest number of slots that a worker owns.
        self._n_own = max(len(slots.own(each)) for each in range(slots.n_workers))
        self._total = 0

    # --- gradients --------------------------------------------------------------------------

    def hand_over(
        self, tables: Mapping[int, List[Rows]], weight: int, n_slots: int
    ) -> Tuple[int, List[Gradient]]:
        shape = (self._n_own, len(self._widths), self.slots.n_workers)
        counts = numpy.zeros(shape, dtype="i8")
        # Sorted, because the other workers receive the slots in this order.
        gradients = {slot: Gradient(self.vectors[slot], tables[slot]) for slot in sorted(tables)}
        going: List[Tuple[int, Any]] = []
        for slot, gradient in gradients.items():
            for other in self.others:
                for piece, part in zip(self.pieces[other], self.cut(other, gradient)):
                    if not piece.width:
                        going.append((other, part))
                    elif n_rows := len(part[0]):
                        counts[self._place(slot), piece.table, other] = n_rows
                        going += [(other, self._xp.asarray(part[0])), (other, part[1])]
        told = self._with.gather(self._xp, [weight, *counts.reshape(-1).tolist()])
        self._total = int(told[:, 0].sum())
        all_counts = told[:, 1:].reshape(self.slots.n_workers, *shape)
        coming: List[Tuple[int, Any]] = []
        for slot in range(n_slots):
            if slot in gradients:
                continue
            owner = self.slots.worker(slot)
            of_tables = all_counts[owner, self._place(slot), :, self.worker].tolist()
            gradients[slot], arrays = self._room(slot, of_tables)
            coming += [(owner, array) for array in arrays]
        with self._with.group():
            for other, array in going:
                self._with.send(array, other)
            for owner, array in coming:
                self._with.recv(array, owner)
        self.clear_sent(tables)
        return self._total, [
            gradients[slot] if slot in tables else self._known(gradients[slot])
            for slot in range(n_slots)
        ]

    def _place(self, slot: int) -> int:
        """Return the position of a slot among its worker's slots."""
        return slot - self.slots.own(self.slots.worker(slot))[0]

    def _room(self, slot: int, n_rows: List[int]) -> Tuple[Gradient, List[Any]]:
        """Return an empty gradient for the part of another worker's gradient that this worker owns,
        and its arrays in the order in which the other worker sends them.

        slot (int): Number of the slot.
        n_rows (List[int]): Number of rows of each table that the other worker sends.
        """
        vector, empty = self.received[slot], self._xp.empty
        tables = [(empty(n, "i8"), empty((n, w), "f")) for n, w in zip(n_rows, self._widths)]
        arrays: List[Any] = []
        for piece in self.pieces[self.worker]:
            if not piece.width:
                arrays.append(vector[piece.start : piece.stop])
            elif n_rows[piece.table]:
                arrays += tables[piece.table]
        return Gradient(vector, tables), arrays

    def _known(self, gradient: Gradient) -> Gradient:
        """Return the gradient with the numbers of its rows copied to the host."""
        tables = [(self._with.get(rows), values) for rows, values in gradient.tables]
        return Gradient(gradient.vector, tables)

    # --- parameters -------------------------------------------------------------------------

    def all_sums(self) -> Any:
        total = self._xp.asarray(self.sums)
        self._with.add_up(total)
        return self._with.get(total)

    def stepped(self, pieces: Sequence[Piece], rows: Mapping[int, Any]) -> None:
        if not self._total:
            return
        own = [len(rows[table]) if table in rows else _ALL for table in range(len(self._widths))]
        numbers: Any = self._with.gather(self._xp, own) if own else None
        placed: List[Tuple[Any, Any, Any]] = []
        with self._with.group():
            for worker, of_worker in enumerate(self.pieces):
                for piece in of_worker:
                    view = self.values[piece.start : piece.stop]
                    n_rows = int(numbers[worker, piece.table]) if piece.width else _ALL
                    if n_rows == _ALL:
                        self._with.broadcast(view, worker)
                    elif n_rows:
                        table = view.reshape((-1, piece.width))
                        changed, values = self._changed(piece, table, rows, worker, n_rows)
                        self._with.broadcast(changed, worker)
                        self._with.broadcast(values, worker)
                        placed.append((table, changed, values))
        for table, changed, values in placed:
            table[changed] = values

    def _changed(
        self, piece: Piece, table: Any, rows: Mapping[int, Any], worker: int, n_rows: int
    ) -> Tuple[Any, Any]:
        """Return the numbers and values of a piece's changed rows. If another worker owns the
        piece, they are empty arrays that receive its data."""
        if worker != self.worker:
            return self._xp.empty(n_rows, "i8"), self._xp.empty((n_rows, piece.width), "f")
        changed = self._xp.asarray(rows[piece.table])
        return changed, table.take(changed, axis=0)
