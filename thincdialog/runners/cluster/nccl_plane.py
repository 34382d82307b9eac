"""The exchange between workers that have a GPU each: directly from one GPU to another."""

from typing import Any, Dict, List, Mapping, Sequence, Tuple

import numpy
from thinc.api import get_array_module

from ...ops.alignment import aligned_zeros
from ...optimizers.row_sparse import Rows, Segment
from .communicator import Communicator
from .gradient import Gradient
from .lone_plane import LonePlane
from .owned import Piece, pieces_of
from .slots import Slots

# Instead of a number of rows: all rows.
_ALL = -1


class NcclPlane(LonePlane):
    """Each worker sends every other worker the pieces of its gradients that the other one owns,
    and receives the changed parameters. Only the numbers of rows and the sums of blocks are copied
    to the host.

    communicator (Communicator): Connected with the other workers.
    values (Floats1d): The current values of all parameters, on the device.
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
        workers = range(slots.n_workers)
        self._others = [other for other in workers if other != worker]
        self._pieces = [pieces_of(stretches, each, slots.n_workers) for each in workers]
        self._widths = [part.width for part in stretches if part.width]
        # The largest number of slots that a worker owns.
        self._n_own = max(len(slots.own(each)) for each in workers)
        self._total = 0
        # Vectors for other workers' slots, in which only the own pieces are used.
        self._scratch: Dict[int, Any] = {}

    # --- gradients --------------------------------------------------------------------------

    def hand_over(
        self, tables: Mapping[int, List[Rows]], weight: int, n_slots: int
    ) -> Tuple[int, List[Gradient]]:
        shape = (self._n_own, len(self._widths), self.slots.n_workers)
        counts = numpy.zeros(shape, dtype="i8")
        # In the order in which the others receive them.
        gradients = {slot: Gradient(self.vectors[slot], tables[slot]) for slot in sorted(tables)}
        going: List[Tuple[int, Any]] = []
        for slot, gradient in gradients.items():
            for other in self._others:
                cut, n_rows = self._cut(other, gradient)
                going += [(other, array) for array in cut]
                counts[self._place(slot), :, other] = n_rows
        told = self._with.gather(self._xp, [weight, *counts.reshape(-1).tolist()])
        self._total = int(told[:, 0].sum())
        all_counts = told[:, 1:].reshape(self.slots.n_workers, *shape)
        coming: List[Tuple[int, Any]] = []
        for slot in range(n_slots):
            if slot in gradients:
                continue
            owner = self.slots.worker(slot)
            n_rows = all_counts[owner, self._place(slot), :, self.worker].tolist()
            gradients[slot], arrays = self._room(slot, n_rows)
            coming += [(owner, array) for array in arrays]
        with self._with.group():
            for other, array in going:
                self._with.send(array, other)
            for owner, array in coming:
                self._with.recv(array, owner)
        for slot in tables:
            for other in self._others:
                for piece in self._pieces[other]:
                    if not piece.width:
                        self.vectors[slot][piece.start : piece.stop].fill(0)
        return self._total, [
            gradients[slot] if slot in tables else self._known(gradients[slot])
            for slot in range(n_slots)
        ]

    def _place(self, slot: int) -> int:
        """Return the position of a slot among those of its worker."""
        return slot - self.slots.own(self.slots.worker(slot))[0]

    def _cut(self, other: int, gradient: Gradient) -> Tuple[List[Any], List[int]]:
        """Return the part of a gradient that a worker owns, and its rows per table."""
        cut: List[Any] = []
        n_rows = [0] * len(self._widths)
        for piece in self._pieces[other]:
            if not piece.width:
                cut.append(gradient.vector[piece.start : piece.stop])
                continue
            rows, values = gradient.tables[piece.table]
            ends = [(at - piece.origin) // piece.width for at in (piece.start, piece.stop)]
            low, high = numpy.searchsorted(rows, ends).tolist()
            if high > low:
                n_rows[piece.table] = high - low
                cut += [self._xp.asarray(rows[low:high]), values[low:high]]
        return cut, n_rows

    def _room(self, slot: int, n_rows: List[int]) -> Tuple[Gradient, List[Any]]:
        """Return a gradient that receives the own pieces of another worker's, and the arrays to
        receive, in the order of that worker's ``_cut``."""
        if slot not in self._scratch:
            self._scratch[slot] = aligned_zeros(len(self.values), self._xp)
        vector, empty = self._scratch[slot], self._xp.empty
        tables = [(empty(n, "i8"), empty((n, w), "f")) for n, w in zip(n_rows, self._widths)]
        arrays: List[Any] = []
        for piece in self._pieces[self.worker]:
            if not piece.width:
                arrays.append(vector[piece.start : piece.stop])
            elif n_rows[piece.table]:
                arrays += tables[piece.table]
        return Gradient(vector, tables), arrays

    def _known(self, gradient: Gradient) -> Gradient:
        """Copy the numbers of rows to the host."""
        tables = [(self._with.get(rows), values) for rows, values in gradient.tables]
        return Gradient(gradient.vector, tables)

    # --- parameters -------------------------------------------------------------------------

    def all_sums(self, sums: Any) -> Any:
        total = self._xp.asarray(sums)
        self._with.add_up(total)
        return self._with.get(total)

    def stepped(self, pieces: Sequence[Piece], rows: Mapping[int, Any]) -> None:
        if not self._total:
            return
        own = [len(rows[table]) if table in rows else _ALL for table in range(len(self._widths))]
        numbers: Any = self._with.gather(self._xp, own) if own else None
        placed: List[Tuple[Any, Any, Any]] = []
        with self._with.group():
            for worker, of_worker in enumerate(self._pieces):
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
        """Return numbers and values of changed rows: the own, or empty arrays for another's."""
        if worker != self.worker:
            return self._xp.empty(n_rows, "i8"), self._xp.empty((n_rows, piece.width), "f")
        changed = self._xp.asarray(rows[piece.table])
        return changed, table.take(changed, axis=0)
