"""The counterpart of ``owned`` for parameters on a GPU."""

from typing import Any, Dict, List, Sequence, Tuple

import numpy
from thinc.util import is_numpy_array

from ...ops.gpu import kernels
from ...optimizers.row_sparse import Segment
from ...optimizers.state import Key
from .gradient import Gradient
from .owned import Owned, Piece
from .slots import additions


class OwnedOnDevice(Owned):
    """Sum gradients and make steps on a GPU (see ``Owned``). Vectors, gradients of tables and state
    are on the device; numbers of rows and sums of blocks are on the host, which waits for the sums
    once per step."""

    def add_up(self, slots: Sequence[Gradient], sums: Any) -> None:
        waiting: List[Tuple[Piece, Any]] = []
        for piece in self.pieces:
            if piece.width:
                rows, total = self._add_up_rows(piece, slots)
                bounds = _bounds_of_rows(piece, rows)
            else:
                total = _added(piece, [slot.vector for slot in slots])
                bounds = _bounds(piece)
            waiting.append((piece, kernels.stretch_squares(total, bounds)))
        if not waiting:
            return
        ops: Any = self.ops
        found, start = ops.xp.concatenate([squares for _, squares in waiting]).get(), 0
        for piece, _ in waiting:
            stop = start + piece.n_blocks
            sums[piece.first : piece.first + piece.n_blocks] = found[start:stop]
            start = stop

    def _sparse_step(
        self, key: Key, values: Any, gradient: Any, part: Segment, scale: float
    ) -> None:
        asarray: Any = self.ops.xp.asarray
        if part.rows is not None:
            part = part._replace(rows=asarray(part.rows, dtype="i"))
        # Kernels read the factor from an array, at index 1. The norm, at index 0, is not read here.
        found = asarray(numpy.array([0.0, scale], dtype="f"))
        self.optimizer.update_parts(key, values, gradient, [part], scale=found, ops=self.ops)


def _added(piece: Piece, vectors: Sequence[Any]) -> Any:
    views = [vector[piece.start : piece.stop] for vector in vectors]
    for left, right in additions(len(views)):
        views[left] += views[right]
        views[right].fill(0)
    return views[0]


def _bounds(piece: Piece) -> Any:
    """Return where each block of a piece begins and ends, counted from the start of the piece."""
    n = piece.stop - piece.start
    return kernels.bounds([(at, min(n, at + piece.step)) for at in range(0, n, piece.step)])


def _bounds_of_rows(piece: Piece, rows: Any) -> Any:
    """Return where the rows of each block begin and end among the rows that have a gradient."""
    import cupy

    firsts = numpy.arange(piece.n_blocks + 1) * (piece.step // piece.width)
    edges = numpy.searchsorted(rows, firsts) * piece.width
    return cupy.asarray(numpy.stack([edges[:-1], edges[1:]], axis=1).astype("i8"))


def make_owned(pieces: List[Piece], optimizer: Any, ops: Any, state: Dict[str, Any]) -> Owned:
    """Make an ``Owned``, or an ``OwnedOnDevice`` if the arrays are on a GPU.

    pieces, optimizer, ops, state: See ``Owned``.
    """
    is_on_host = all(is_numpy_array(array) for array in state.values())
    return (Owned if is_on_host else OwnedOnDevice)(pieces, optimizer, ops, state)
