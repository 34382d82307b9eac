"""The plane of workers with GPUs that exchange data through the memory of their hosts."""

from typing import Any, Dict, List, Mapping, Sequence, Tuple

from thinc.api import get_array_module
from thinc.util import is_numpy_array

from ...models.gradient_sum import dense_slices
from ...ops.alignment import aligned_zeros
from ...optimizers.row_sparse import Rows
from .gradient import Gradient, to_host
from .lone_plane import LonePlane
from .owned import Piece, pieces_of


def placed(plane: LonePlane, weights: Any) -> LonePlane:
    """Return the plane itself if the model is on the host, else a ``DevicePlane`` around it.

    plane (LonePlane): Plane on the host.
    weights (Floats1d): Weights of the model.
    """
    return plane if is_numpy_array(weights) else DevicePlane(plane, get_array_module(weights))


class DevicePlane(LonePlane):
    """Exchange gradients and parameters of GPUs through another plane, on the host. Gradients are
    copied to the host, and the other plane takes them to their owners. Each owner sums them and
    makes the optimizer's steps on its GPU. New parameters go back the same way.

    inner (LonePlane): Plane on the host, with the current parameters and state.
    xp (module): CuPy.
    """

    def __init__(self, inner: LonePlane, xp: Any):
        values: Any = aligned_zeros(len(inner.values), xp)
        values.set(inner.values)
        super().__init__(values, inner.stretches, inner.slots, inner.worker)
        self._inner, self._xp, self.sums = inner, xp, inner.sums
        for name, array in inner.state.items():
            self.state[name].set(array)
        self._own = pieces_of(inner.stretches, inner.worker, inner.slots.n_workers)
        self._dense = dense_slices(inner.stretches)
        self._foreign = _gaps(self._own, len(values))
        # Vectors for the slots of other workers; only the pieces that this worker owns are used.
        self._scratch: Dict[int, Any] = {}

    def hand_over(
        self, tables: Mapping[int, List[Rows]], weight: int, n_slots: int
    ) -> Tuple[int, List[Gradient]]:
        inner = self._inner
        own = {slot: Gradient(self.vectors[slot], tables[slot]) for slot in tables}
        sent: Dict[int, List[Rows]] = {}
        for slot, gradient in own.items():
            sent[slot] = to_host(gradient, inner.vectors[slot], self._dense).tables
            for now in self._foreign:
                gradient.vector[now].fill(0)
        total, gradients = inner.hand_over(sent, weight, n_slots)
        return total, [
            own[slot] if slot in own else self._on_device(slot, gradient)
            for slot, gradient in enumerate(gradients)
        ]

    def _on_device(self, slot: int, gradient: Gradient) -> Gradient:
        """Copy another worker's gradient to the device, for the pieces that this worker owns."""
        if slot not in self._scratch:
            self._scratch[slot] = aligned_zeros(len(self.values), self._xp)
        vector, asarray = self._scratch[slot], self._xp.asarray
        tables = [(rows[:0], asarray(values[:0])) for rows, values in gradient.tables]
        for piece in self._own:
            if not piece.width:
                now = slice(piece.start, piece.stop)
                vector[now].set(gradient.vector[now])
                continue
            rows, values = gradient.tables[piece.table]
            now = piece.rows_among(rows)
            tables[piece.table] = rows[now].copy(), asarray(values[now])
        return Gradient(vector, tables)

    def all_sums(self) -> Any:
        return self._inner.all_sums()

    def stepped(self, pieces: Sequence[Piece], rows: Mapping[int, Any]) -> None:
        host = self._inner.values
        for piece in pieces:
            now = slice(piece.start, piece.stop)
            if piece.width and piece.table in rows:
                own, shape = rows[piece.table], (-1, piece.width)
                changed = self.values[now].reshape(shape).take(self._xp.asarray(own), axis=0)
                host[now].reshape(shape)[own] = changed.get()
            else:
                self.values[now].get(out=host[now])
        self._inner.stepped(pieces, rows)
        for now in self._foreign:
            self.values[now].set(host[now])


def _gaps(pieces: Sequence[Piece], n: int) -> List[slice]:
    """Return the ranges of a vector between pieces."""
    edges = [0]
    for piece in pieces:
        edges += [piece.start, piece.stop]
    edges.append(n)
    pairs = zip(edges[::2], edges[1::2])
    return [slice(start, stop) for start, stop in pairs if stop > start]
