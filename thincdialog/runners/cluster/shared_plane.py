"""The plane of workers on the same machine, which exchange data through shared memory."""

import os
import threading
import time
from typing import Any, List, Mapping, Sequence, Tuple

from ...optimizers.row_sparse import Rows, Segment
from ...optimizers.state import ARRAYS
from ..mapped_arrays import Layout, MappedArrays
from .gradient import Gradient
from .lone_plane import Aborted, LonePlane
from .owned import Piece, n_blocks_of
from .slots import Slots

VALUES, SUMS, EXAMPLES, PHASES, ABORT = "values", "sums", "examples", "phases", "abort"
# Number of int64 in a cache line, so that no two workers write to the same line.
LINE = 8
# A waiting worker first checks SPINS times without a pause. Then it yields the core between checks,
# for YIELD_SECONDS in total; after that it sleeps for SLEEP_SECONDS between checks.
SPINS, YIELD_SECONDS, SLEEP_SECONDS = 200, 0.005, 0.0002


def shared_layout(n: int, stretches: Sequence[Segment], slots: Slots) -> Layout:
    """Return the layout of the memory that workers share.

    n (int): Number of floats of all parameters.
    stretches (Sequence[Segment]): Segments that make up the parameters.
    slots (Slots): Assignment of microbatches to workers.
    """
    n_workers = slots.n_workers
    layout: Layout = [(name, (n,), "<f4") for name in (VALUES, *ARRAYS)]
    layout += [
        (SUMS, (n_blocks_of(stretches),), "<f8"),
        (EXAMPLES, (n_workers, LINE), "<i8"),
        (PHASES, (n_workers, LINE), "<i8"),
        (ABORT, (LINE,), "<i8"),
    ]
    for slot in range(slots.n_slots):
        layout.append((f"vector {slot}", (n,), "<f4"))
        for table, part in enumerate(part for part in stretches if part.width):
            n_rows = (part.stop - part.start) // part.width
            layout.append((f"n rows {slot} {table}", (LINE,), "<i8"))
            layout.append((f"rows {slot} {table}", (n_rows,), "<i8"))
            layout.append((f"d rows {slot} {table}", (n_rows, part.width), "<f4"))
    return layout


def write_rows(arrays: Mapping[str, Any], slot: int, tables: Sequence[Rows]) -> None:
    """Write the gradients of tables into the arrays of a slot."""
    for table, (rows, values) in enumerate(tables):
        n_rows = len(rows)
        arrays[f"rows {slot} {table}"][:n_rows] = rows
        arrays[f"d rows {slot} {table}"][:n_rows] = values
        arrays[f"n rows {slot} {table}"][0] = n_rows


def read_rows(arrays: Mapping[str, Any], slot: int, n_tables: int) -> List[Rows]:
    """Return views of the gradients that ``write_rows`` has written for a slot."""
    tables: List[Rows] = []
    for table in range(n_tables):
        now = slice(int(arrays[f"n rows {slot} {table}"][0]))
        tables.append((arrays[f"rows {slot} {table}"][now], arrays[f"d rows {slot} {table}"][now]))
    return tables


class SharedPlane(LonePlane):
    """Exchange gradients and parameters through shared memory. Workers compute gradients there, and
    each worker updates its pieces of the parameters in place; only the rows of tables are copied.

    memory (MappedArrays): Memory with a ``shared_layout``.
    stretches, slots, worker: See ``LonePlane``.
    """

    def __init__(
        self, memory: MappedArrays, stretches: Sequence[Segment], slots: Slots, worker: int
    ):
        arrays = self._arrays = memory.arrays
        self.stretches, self.slots, self.worker = stretches, slots, worker
        self.values, self.sums = arrays[VALUES], arrays[SUMS]
        self.state = {name: arrays[name] for name in ARRAYS}
        self._all_vectors = [arrays[f"vector {slot}"] for slot in range(slots.n_slots)]
        self.vectors = {slot: self._all_vectors[slot] for slot in slots.own(worker)}
        self._n_tables = sum(bool(part.width) for part in stretches)
        self._phases, self._abort = arrays[PHASES][:, 0], arrays[ABORT]
        self._phase = int(self._phases[worker])
        self._lock = threading.Lock()

    def hand_over(
        self, tables: Mapping[int, List[Rows]], weight: int, n_slots: int
    ) -> Tuple[int, List[Gradient]]:
        arrays = self._arrays
        for slot, of_slot in tables.items():
            write_rows(arrays, slot, of_slot)
        arrays[EXAMPLES][self.worker, 0] = weight
        self._meet()
        total = int(arrays[EXAMPLES][:, 0].sum())
        return total, [self._gradient(slot) for slot in range(n_slots)]

    def _gradient(self, slot: int) -> Gradient:
        tables = read_rows(self._arrays, slot, self._n_tables)
        return Gradient(self._all_vectors[slot], tables)

    def all_sums(self) -> Any:
        self._meet()
        return self.sums

    def stepped(self, pieces: Sequence[Piece], rows: Mapping[int, Any]) -> None:
        self._meet()

    def _meet(self) -> None:
        """Wait until all workers have reached this point.

        RAISES (Aborted): If the run's process has called ``abort``.
        """
        # A lock serves as a memory barrier, which some kinds of processors need here.
        with self._lock:
            self._phase += 1
        phases, phase = self._phases, self._phase
        phases[self.worker] = phase
        n_looks, began = 0, 0.0
        while phases.min() < phase:
            if self._abort[0]:
                raise Aborted
            n_looks += 1
            if n_looks < SPINS:
                continue
            now = time.monotonic()
            began = began or now
            if now - began < YIELD_SECONDS:
                os.sched_yield()
            else:
                time.sleep(SLEEP_SECONDS)
        with self._lock:
            pass


def abort(memory: MappedArrays) -> None:
    """Make workers stop waiting for each other."""
    memory.arrays[ABORT][0] = 1
