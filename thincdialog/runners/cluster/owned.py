"""The part of the parameters that a worker owns, and its part of the optimizer's state."""

import math
from typing import Any, Dict, List, NamedTuple, Sequence

import numpy

from ...models.gradient_sum import added_rows
from ...ops.alignment import address
from ...optimizers.adam import thincs_step
from ...optimizers.row_sparse import Rows, RowSparseOptimizer, Segment
from ...optimizers.state import ARRAYS, Key
from .gradient import Gradient
from .slots import additions

# Floats in a block, which stays in a core's cache while it is summed. Norms are added up block by
# block, no matter which worker owns a block; so another size would change their last bits.
BLOCK_FLOATS = 32768


class Piece(NamedTuple):
    """Describe the part of a stretch of the parameters that a worker owns.

    start, stop (int): Range of its floats in the parameters.
    origin (int): Where the stretch begins.
    width (int): Floats in a row, if the stretch is a table; else 0.
    table (int): Number of the table, if the stretch is one.
    step (int): Floats in a block: whole rows, if the stretch is a table.
    first (int): Number of its first block among the blocks of all parameters.
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
        """The number of its blocks."""
        return -(-(self.stop - self.start) // self.step)

    @property
    def first_row(self) -> int:
        """The number of the piece's first row in its table."""
        return (self.start - self.origin) // self.width

    def rows_among(self, rows: Any) -> slice:
        """Return which of a table's sorted row numbers are in the piece."""
        end = (self.stop - self.origin) // self.width
        low, high = numpy.searchsorted(rows, (self.first_row, end)).tolist()
        return slice(low, high)


def pieces_of(stretches: Sequence[Segment], worker: int, n_workers: int) -> List[Piece]:
    """Return the pieces that a worker owns: its share of the blocks of each stretch."""
    pieces: List[Piece] = []
    first = n_tables = 0
    for number, part in enumerate(stretches):
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


def n_blocks_of(stretches: Sequence[Segment]) -> int:
    """Return the number of blocks of all parameters."""
    last = pieces_of(stretches, 0, 1)[-1]
    return last.first + last.n_blocks


class Owned:
    """Sums all workers' gradients of the owned pieces, and makes the optimizer's steps there.

    pieces (List[Piece]): The pieces that are owned.
    optimizer (Optimizer): Not used elsewhere.
    ops (Ops): The model's.
    state (Dict[str, Floats1d]): Arrays, as long as the parameters, for the optimizer's state, by
        the optimizer's names; the optimizer works with views of them.
    """

    def __init__(self, pieces: List[Piece], optimizer: Any, ops: Any, state: Dict[str, Any]):
        self.pieces, self.optimizer, self.ops, self.state = pieces, optimizer, ops, state
        self._is_sparse = isinstance(optimizer, RowSparseOptimizer)
        self._rows: Dict[int, Rows] = {}

    def add_up(self, slots: Sequence[Gradient], sums: Any) -> None:
        """Sum the gradients of all slots, in a fixed tree, into the vector of the first slot; the
        other slots' vectors become zero.

        slots (Sequence[Gradient]): In their order; one or more.
        sums (Array1d): One float64 for each block of all parameters; the values of the own blocks
            become the sums of their squared gradients.
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
        """Sum the gradients of a table; RETURNS its rows, counted from the piece's beginning."""
        own: List[Rows] = []
        for slot in slots:
            rows, values = slot.tables[piece.table]
            now = piece.rows_among(rows)
            own.append((rows[now] - piece.first_row, values[now]))
        for left, right in additions(len(own)):
            own[left] = added_rows(self.ops, own[left], own[right])
        rows, values = own[0]
        self._rows[piece.table] = (rows, values)
        if not self._is_sparse:
            dense = slots[0].vector[piece.start : piece.stop].reshape(-1, piece.width)
            dense[...] = 0
            dense[rows] = values
        return rows, values

    def norm(self, sums: Any, scale: float) -> float:
        """Return the norm of the whole scaled gradient.

        sums (Array1d): Sums of all blocks, from ``add_up`` of all workers.
        scale (float): Factor of the gradients.
        """
        return abs(scale) * math.sqrt(math.fsum(sums.tolist()))

    def step(self, values: Any, gradients: Any, scale: float, norm: float) -> None:
        """Make a step of the optimizer with the sums of ``add_up``; the gradients become zero.
        Schedules are not stepped.

        values (Floats1d): All parameters; the own ones change.
        gradients (Floats1d): The vector of the first slot.
        scale (float): Factor of the gradients.
        norm (float): Norm of the whole scaled gradient, for clipping.
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
                self._sparse_step(piece.key, values[now], gradient, part, scale)
            else:
                self._thincs_step(piece.key, values[now], gradient, scale)
            if self._is_sparse and not piece.width:
                gradient.fill(0)
            self._adopt(piece)
        self._rows = {}

    def _sparse_step(
        self, key: Key, values: Any, gradient: Any, part: Segment, scale: float
    ) -> None:
        self.optimizer.update_parts(key, values, gradient, [part], scale=scale, ops=self.ops)

    def _thincs_step(self, key: Key, values: Any, gradient: Any, scale: float) -> None:
        """Make a step of an optimizer of Thinc's, without its clipping, which is for each piece."""
        optimizer = self.optimizer
        limit, optimizer.grad_clip = optimizer.grad_clip, 0.0
        try:
            stepped = thincs_step(optimizer, key, values, gradient, self.ops, scale)
        finally:
            optimizer.grad_clip = limit
        if address(stepped) != address(values):
            values[:] = stepped

    def _adopt(self, piece: Piece) -> None:
        """Move the optimizer's arrays, which it makes when it needs them, into ``state``."""
        for name in ARRAYS:
            known = getattr(self.optimizer, name) or {}
            if piece.key in known:
                view = self.state[name][piece.start : piece.stop]
                if address(known[piece.key]) != address(view):
                    view[:] = known[piece.key]
                    known[piece.key] = view

    def changed_rows(self) -> Dict[int, Any]:
        """Return, by the number of a table, the only rows of the own piece that the next step
        changes, counted from the beginning of the piece."""
        if not self._is_sparse:
            return {}
        return {table: rows for table, (rows, _) in self._rows.items()}

    def kept(self) -> List[str]:
        """Return the names of the arrays that the optimizer has made so far."""
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
