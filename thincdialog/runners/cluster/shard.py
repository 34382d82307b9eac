"""The pieces of the parameters, and of the optimizer's state, that one worker owns."""

import math
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

import numpy

from ...ops.alignment import address
from ...ops.table_gradient import Rows, merged_rows
from ...optimizers.adam import thincs_step
from ...optimizers.row_sparse import RowSparseOptimizer, Segment
from ...optimizers.state import ARRAYS, KEY, Key, restore_optimizer
from .slots import additions

# Floats in a block, which is small enough to stay in a core's cache while it is summed. Norms are
# summed block by block, whichever worker owns a block: another size would change their last bits.
BLOCK_FLOATS = 32768


class Gradient(NamedTuple):
    """Hold the gradient of all parameters: dense parts as a vector, and embedding tables as the
    rows that have a gradient.

    vector (Floats1d): Gradient as long as the parameters; its values in the ranges of tables are
        not used.
    tables (List[Rows]): For each table, the numbers of the rows and their gradients.
    """

    vector: Any
    tables: List[Rows]


class Piece(NamedTuple):
    """Describe the part of a segment of the parameters that a worker owns.

    start, stop (int): Range of the piece's floats in the parameters.
    origin (int): First index of the segment in the parameters.
    width (int): Floats in a row if the segment is a table; else 0.
    table (int): Number of the table if the segment is a table.
    step (int): Floats in a block; a table's blocks are whole rows.
    first (int): Number of the piece's first block among the blocks of all parameters.
    key (Key): The optimizer's key for the piece.
    """

    start: int
    stop: int
    origin: int
    width: int
    table: int
    step: int
    first: int
    key: Key

    @property
    def n_blocks(self) -> int:
        """Number of blocks in the piece."""
        return -(-(self.stop - self.start) // self.step)

    @property
    def first_row(self) -> int:
        """Number of the piece's first row in its table."""
        return (self.start - self.origin) // self.width

    def rows_among(self, rows: Any) -> slice:
        """Return the slice of a table's sorted row numbers that are in the piece."""
        end = (self.stop - self.origin) // self.width
        low, high = numpy.searchsorted(rows, (self.first_row, end)).tolist()
        return slice(low, high)


def pieces_of(segments: Sequence[Segment], worker: int, n_workers: int) -> List[Piece]:
    """Return the pieces that a worker owns: a share of the blocks of each segment.

    segments (Sequence[Segment]): Segments that make up the parameters.
    worker (int): Number of the worker, from 0.
    n_workers (int): Number of workers.
    """
    pieces: List[Piece] = []
    first = n_tables = 0
    for number, part in enumerate(segments):
        step = max(1, BLOCK_FLOATS // part.width) * part.width if part.width else BLOCK_FLOATS
        n_blocks = -(-(part.stop - part.start) // step)
        begin, end = (n_blocks * each // n_workers for each in (worker, worker + 1))
        if end > begin:
            start = part.start + begin * step
            stop = min(part.stop, part.start + end * step)
            key = (number, "parameters")
            where = (start, stop, part.start, part.width, n_tables, step, first + begin)
            pieces.append(Piece(*where, key))
        first += n_blocks
        n_tables += bool(part.width)
    return pieces


def n_blocks_of(segments: Sequence[Segment]) -> int:
    """Return the number of blocks of all parameters."""
    last = pieces_of(segments, 0, 1)[-1]
    return last.first + last.n_blocks


class Shard:
    """Sum the gradients of all workers for the pieces that a worker owns, and make the optimizer's
    steps on these pieces.

    pieces (List[Piece]): The pieces that the worker owns.
    optimizer (Optimizer): Optimizer that is used only here.
    ops (Ops): Ops for these arrays, which are on the host.
    arrays (Dict[str, Floats1d]): Arrays of the optimizer's state, by the optimizer's names, each as
        long as the parameters; the optimizer works with views of them.
    """

    def __init__(self, pieces: List[Piece], optimizer: Any, ops: Any, arrays: Dict[str, Any]):
        self.pieces, self.optimizer, self.ops, self.arrays = pieces, optimizer, ops, arrays
        self._is_sparse = isinstance(optimizer, RowSparseOptimizer)
        self._rows: Dict[int, Rows] = {}

    def restore(self, state: Mapping[str, Any], values: Any) -> None:
        """Give the optimizer, which must be new, the state of an optimizer with one key for all
        parameters.

        state (Mapping[str, Any]): State without arrays (``RayRunner.optimizer_state``).
        values (Floats1d): All parameters.
        """
        n_updates = {tuple(key): n for key, n in state["nr_update"]}.get(KEY, 0)
        keys = [piece.key for piece in self.pieces] or [KEY]
        files: Dict[str, Any] = {}
        names: List[Any] = []
        for piece in self.pieces:
            for name in state["kept"]:
                file = f"{name}-{piece.key[0]}"
                names.append([name, list(piece.key), file])
                files[file] = self.arrays[name][piece.start : piece.stop]
        known = {
            "settings": state["settings"],
            "schedules": state["schedules"],
            "nr_update": [[list(key), n_updates] for key in keys],
            "last_seen": [],
            "arrays": names,
        }
        restore_optimizer(self.optimizer, values, known, files)

    def add_up(self, slots: Sequence[Gradient], sums: Any) -> None:
        """Sum the gradients of all slots into the vector of the first slot, in a fixed order (see
        ``additions``). The vectors of the other slots become zero.

        slots (Sequence[Gradient]): Gradients in the order of the slots, one or more.
        sums (Array1d): One float64 for each block of all parameters. For the worker's own blocks,
            it receives the sums of their squared gradients.
        """
        for piece in self.pieces:
            if piece.width:
                rows, values = self._add_up_rows(piece, slots)
                squares = numpy.einsum("ij,ij->i", values, values, dtype="d")
                blocks = rows // (piece.step // piece.width)
                now = slice(piece.first, piece.first + piece.n_blocks)
                sums[now] = numpy.bincount(blocks, squares, piece.n_blocks)
            else:
                _add_up_dense(piece, [slot.vector for slot in slots], sums)

    def _add_up_rows(self, piece: Piece, slots: Sequence[Gradient]) -> Rows:
        """Return the sum of a table's gradients, with rows counted from the start of the piece."""
        own: List[Rows] = []
        for slot in slots:
            rows, values = slot.tables[piece.table]
            now = piece.rows_among(rows)
            own.append((rows[now] - piece.first_row, values[now]))
        for left, right in additions(len(own)):
            own[left] = merged_rows(self.ops, (own[left], own[right]))
        rows, values = own[0]
        self._rows[piece.table] = (rows, values)
        if not self._is_sparse:
            dense = slots[0].vector[piece.start : piece.stop].reshape(-1, piece.width)
            dense[...] = 0
            dense[rows] = values
        return rows, values

    def norm(self, sums: Any, scale: float) -> float:
        """Return the norm of the scaled gradient of all parameters.

        sums (Array1d): Sums of all blocks, from ``add_up`` of all workers.
        scale (float): Factor by which the gradient is multiplied.
        """
        return abs(scale) * math.sqrt(math.fsum(sums.tolist()))

    def step(self, values: Any, gradients: Any, scale: float, norm: float) -> None:
        """Make a step of the optimizer with the sums of ``add_up``, then set the gradients to zero.
        Schedules are not stepped.

        values (Floats1d): All parameters; those in the worker's pieces change.
        gradients (Floats1d): Vector of the first slot.
        scale (float): Factor by which the gradient is multiplied.
        norm (float): Norm of the scaled gradient of all parameters, for clipping.
        """
        optimizer = self.optimizer
        limit = optimizer.grad_clip
        if limit and norm > limit:
            scale *= limit / norm
        for piece in self.pieces:
            now = slice(piece.start, piece.stop)
            gradient = gradients[now]
            if self._is_sparse:
                part = Segment(0, piece.stop - piece.start)
                if piece.width:
                    rows, d_rows = self._rows[piece.table]
                    part = part._replace(width=piece.width, rows=rows, d_rows=d_rows)
                optimizer.update_parts(
                    piece.key, values[now], gradient, [part], scale=scale, ops=self.ops
                )
            else:
                self._thinc_step(piece.key, values[now], gradient, scale)
            if self._is_sparse and not piece.width:
                gradient.fill(0)
            self._move_new_arrays(piece)
        self._rows = {}

    def _thinc_step(self, key: Key, values: Any, gradient: Any, scale: float) -> None:
        """Make a step of one of Thinc's optimizers without its own clipping, because that would
        clip each piece separately."""
        optimizer = self.optimizer
        limit, optimizer.grad_clip = optimizer.grad_clip, 0.0
        try:
            stepped = thincs_step(optimizer, key, values, gradient, self.ops, scale)
        finally:
            optimizer.grad_clip = limit
        if address(stepped) != address(values):
            values[:] = stepped

    def _move_new_arrays(self, piece: Piece) -> None:
        """Move arrays that the optimizer has created in its step into ``arrays``."""
        for name in ARRAYS:
            known = getattr(self.optimizer, name) or {}
            if piece.key in known:
                view = self.arrays[name][piece.start : piece.stop]
                if address(known[piece.key]) != address(view):
                    view[:] = known[piece.key]
                    known[piece.key] = view

    def changed_rows(self) -> Dict[int, Any]:
        """Return the rows that the next step changes, counted from the start of the piece, by the
        number of the table. A table that is missing may change in all rows."""
        if not self._is_sparse:
            return {}
        return {table: rows for table, (rows, _) in self._rows.items()}

    def kept(self) -> List[str]:
        """Return the names of the arrays that the optimizer has created so far."""
        keys = {piece.key for piece in self.pieces}
        return [name for name in ARRAYS if keys & set(getattr(self.optimizer, name) or {})]


def _add_up_dense(piece: Piece, vectors: Sequence[Any], sums: Any) -> None:
    pairs = list(additions(len(vectors)))
    block = piece.first
    for start in range(piece.start, piece.stop, piece.step):
        now = slice(start, min(piece.stop, start + piece.step))
        views = [vector[now] for vector in vectors]
        for left, right in pairs:
            views[left] += views[right]
            views[right].fill(0)
        total = views[0]
        sums[block] = float(numpy.einsum("i,i->", total, total))
        block += 1
