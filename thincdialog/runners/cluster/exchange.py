"""The arrays through which workers exchange gradients and parameters, on one machine by sharing
them, and between machines by sending pieces of them."""

import os
import threading
import time
from typing import Any, List, Mapping, Sequence, Union

from ...ops.table_gradient import Rows
from ...optimizers.row_sparse import Segment
from ...optimizers.state import ARRAYS
from ..shared_arrays import Arrays, Layout
from .shard import Gradient, Piece, n_blocks_of

VALUES, SUMS, WEIGHTS, PHASES, ABORT = "values", "sums", "weights", "phases", "abort"
# Number of int64 in a cache line, so that no two workers write to the same line.
LINE = 8
# A waiting worker first checks SPINS times without a pause. Then it yields the core between checks,
# for YIELD_SECONDS in total; after that it sleeps for SLEEP_SECONDS between checks.
SPINS, YIELD_SECONDS, SLEEP_SECONDS = 200, 0.005, 0.0002


def state_layout(segments: Sequence[Segment]) -> Layout:
    """Return the layout of the parameters, the optimizer's arrays, and the sums of blocks (see
    ``Shard.add_up``).

    segments (Sequence[Segment]): Segments that make up the parameters.
    """
    floats = [(name, (segments[-1].stop,), "<f4") for name in (VALUES, *ARRAYS)]
    return [*floats, (SUMS, (n_blocks_of(segments),), "<f8")]


def gradients_layout(segments: Sequence[Segment], n_gradients: int) -> Layout:
    """Return the layout of several gradients, which have numbers from 0."""
    layout: Layout = []
    for number in range(n_gradients):
        layout.append((f"vector {number}", (segments[-1].stop,), "<f4"))
        for table, part in enumerate(part for part in segments if part.width):
            n_rows = (part.stop - part.start) // part.width
            layout.append((f"n rows {number} {table}", (LINE,), "<i8"))
            layout.append((f"rows {number} {table}", (n_rows,), "<i8"))
            layout.append((f"d rows {number} {table}", (n_rows, part.width), "<f4"))
    return layout


def meeting_layout(n_workers: int) -> Layout:
    """Return the layout of the weights of workers' losses, and of a ``Barrier``."""
    shape = (n_workers, LINE)
    return [(WEIGHTS, shape, "<i8"), (PHASES, shape, "<i8"), (ABORT, (LINE,), "<i8")]


def write_rows(arrays: Arrays, number: int, tables: Sequence[Rows]) -> None:
    """Write the gradients of tables into the arrays of a gradient."""
    for table, rows in enumerate(tables):
        _write_table(arrays, f"{number} {table}", rows)


def _write_table(arrays: Arrays, place: str, table: Rows) -> None:
    rows, values = table
    arrays[f"rows {place}"][: len(rows)] = rows
    arrays[f"d rows {place}"][: len(rows)] = values
    arrays[f"n rows {place}"][0] = len(rows)


def read(arrays: Arrays, number: int) -> Gradient:
    """Return views of a gradient."""
    tables: List[Rows] = []
    while f"rows {number} {len(tables)}" in arrays:
        place = f"{number} {len(tables)}"
        now = slice(int(arrays[f"n rows {place}"][0]))
        tables.append((arrays[f"rows {place}"][now], arrays[f"d rows {place}"][now]))
    return Gradient(arrays[f"vector {number}"], tables)


def cut(gradient: Gradient, pieces: Sequence[Piece]) -> List[Union[Any, Rows]]:
    """Return the pieces of a gradient that a worker owns: views of the vector for dense pieces, and
    rows for tables."""
    parts: List[Union[Any, Rows]] = []
    for piece in pieces:
        if piece.width:
            rows, values = gradient.tables[piece.table]
            own = piece.rows_among(rows)
            parts.append((rows[own], values[own]))
        else:
            parts.append(gradient.vector[piece.start : piece.stop])
    return parts


def paste(arrays: Arrays, number: int, pieces: Sequence[Piece], parts: Sequence[Any]) -> None:
    """Write the result of ``cut`` into the arrays of a gradient. (Kernels would be compiled again
    for read-only arrays, such as those from Ray.)"""
    for piece, part in zip(pieces, parts):
        if piece.width:
            _write_table(arrays, f"{number} {piece.table}", part)
        else:
            arrays[f"vector {number}"][piece.start : piece.stop] = part


def clear(gradient: Gradient, pieces: Sequence[Piece]) -> None:
    """Set the dense pieces of a gradient to zero."""
    for piece in pieces:
        if not piece.width:
            gradient.vector[piece.start : piece.stop].fill(0)


class Aborted(Exception):
    """Raised in a worker that waits for other workers, when one of them is gone."""


class Barrier:
    """Let workers on the same machine wait for each other.

    arrays (Arrays): Memory that all workers share, with a ``meeting_layout``.
    worker (int): Number of this worker, from 0.
    """

    def __init__(self, arrays: Arrays, worker: int):
        self.phases, self.abort, self.worker = arrays[PHASES][:, 0], arrays[ABORT], worker
        self.phase = int(self.phases[worker])
        self.lock = threading.Lock()

    def wait(self) -> None:
        """Wait until all workers have reached this point.

        RAISES (Aborted): If the run's process has called ``abort``.
        """
        # A lock serves as a memory barrier, which some kinds of processors need here.
        with self.lock:
            self.phase += 1
        phases, phase = self.phases, self.phase
        phases[self.worker] = phase
        n_looks, began = 0, 0.0
        while phases.min() < phase:
            if self.abort[0]:
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
        with self.lock:
            pass


def abort(arrays: Arrays) -> None:
    """Make workers stop waiting for each other."""
    arrays[ABORT][0] = 1


def fill(arrays: Arrays, snapshot: Mapping[str, Any]) -> None:
    """Write the parameters and the optimizer's arrays of a snapshot into arrays."""
    arrays[VALUES][:] = snapshot["weights"]
    for name, array in snapshot["arrays"].items():
        arrays[name][:] = array
